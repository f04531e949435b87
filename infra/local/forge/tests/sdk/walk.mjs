// Walks what Bobbin uses of GitHub, and what its user expects besides, with GitHub's own client. Reads what to talk to from
// standard input; prints what it found, and every exchange. What is right says the test beside it.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { address, App, Client, exchanges, finish, folder, found, git, given, refused } from './client.mjs'

const app = new App({ appId: given.app_id, privateKey: given.private_key, webhooks: { secret: given.webhook_secret }, Octokit: Client })
const org = given.organization
const ada = new Client({ auth: given.user_token })

// The app itself.
const self = (await app.octokit.request('GET /app')).data
found.app = [self.slug, self.permissions.contents, self.client_id === given.client_id]
found.by_client_id = (await new App({
  appId: given.client_id, privateKey: given.private_key, Octokit: Client,
}).octokit.request('GET /app')).data.id === given.app_id
const stranger = new App({ appId: given.app_id, privateKey: given.other_key, Octokit: Client })
found.other_key = await refused(() => stranger.octokit.request('GET /app'))
found.no_token = await refused(() => new Client().request('GET /app'))
found.bad_token = await refused(() => new Client({ auth: 'ghp_nobody' }).request('GET /user'))
found.hook = (await app.octokit.request('GET /app/hook/config')).data.url === given.webhook
found.installations = (await app.octokit.paginate('GET /app/installations')).map(({ account }) => account.login)
found.of_org = (await app.octokit.request('GET /orgs/{org}/installation', { org })).data.id === given.installation
found.of_user = await refused(() => app.octokit.request('GET /users/{username}/installation', { username: 'ada' }))
found.one = (await app.octokit.request('GET /app/installations/{installation_id}', { installation_id: given.installation })).data.target_type

// Repositories, by a person's own token.
const made = (await ada.rest.repos.createInOrg({ org, name: 'web', private: true, auto_init: true, description: 'A page' })).data
const empty = (await ada.rest.repos.createInOrg({ org, name: 'empty', private: true })).data
const site = (await ada.rest.repos.createForAuthenticatedUser({ name: 'site', auto_init: true })).data
found.made = [made.full_name, made.private, made.permissions.admin, made.clone_url === `${given.git}/${org}/web.git`, site.owner.type]
found.taken = await refused(() => ada.rest.repos.createInOrg({ org, name: 'WEB' }))
found.bad_name = await refused(() => ada.rest.repos.createInOrg({ org, name: 'a b' }))
found.me = [(await ada.rest.users.getAuthenticated()).data.login, (await ada.rest.orgs.getMembershipForAuthenticatedUser({ org })).data.role]
found.bot = (await ada.rest.users.getByUsername({ username: `${self.slug}[bot]` })).data.type

// Tokens of the installation.
const repo = { owner: org, repo: 'web' }
found.of_repo = (await app.octokit.rest.apps.getRepoInstallation(repo)).data.id === given.installation
found.not_installed = await refused(() => app.octokit.rest.apps.getRepoInstallation({ owner: 'ada', repo: 'site' }))
const mint = async (more) => (await app.octokit.rest.apps.createInstallationAccessToken({ installation_id: given.installation, ...more })).data
const reading = await mint({ repository_ids: [made.id], permissions: { contents: 'read' } })
found.minted = [reading.permissions, reading.repositories.map(({ name }) => name), Date.parse(reading.expires_at) - Date.now() > 3_500_000]
found.letters = [/^ghs_\d+_[a-z0-9]+\.[a-z0-9]+\.[a-z0-9]+$/.test(reading.token), /^ghs_[a-z0-9]{36}$/.test(
  (await mint({ headers: { 'x-github-stateless-s2s-token': 'disabled' } })).token,
)]
found.too_much = await refused(() => mint({ permissions: { workflows: 'write' } }))
found.more = await refused(() => mint({ permissions: { checks: 'write' } }))
found.outside = await refused(() => mint({ repository_ids: [site.id] }))
found.by_name = (await mint({ repositories: ['web', 'empty'] })).repositories.length
found.unknown_key = await refused(() => app.octokit.request('POST /app/installations/{installation_id}/access_tokens', {
  installation_id: given.installation, repository_id: 1,
}))
exchanges.pop()
const reader = new Client({ auth: reading.token })
found.reads = (await reader.rest.repos.get(repo)).data.permissions
found.other_repo = await refused(() => reader.rest.repos.get({ owner: org, repo: 'empty' }))
found.public_repo = (await reader.rest.repos.get({ owner: 'ada', repo: 'site' })).data.private
found.no_right = await refused(() => reader.rest.pulls.create({ ...repo, title: 'A', head: 'x', base: 'main' }))
found.seen = (await reader.request('GET /installation/repositories')).data.repositories.map(({ name }) => name)
const all = await app.getInstallationOctokit(given.installation)
found.all = (await all.request('GET /installation/repositories', { per_page: 1 })).data.total_count
found.pages = (await all.paginate('GET /installation/repositories', { per_page: 1 })).length
const each = []
await app.eachRepository(({ repository }) => { each.push(repository.name) })
found.each = each.sort()

// Git, with tokens.
const writing = await mint({ repository_ids: [made.id], permissions: { contents: 'write' } })
git('clone', '-q', address(`${org}/web`, reading.token), 'web')
const commit = (branch, file, text, message) => {
  git('-C', 'web', 'checkout', '-q', '-B', branch)
  writeFileSync(join(folder, 'web', file), text)
  git('-C', 'web', 'add', '-A')
  git('-C', 'web', 'commit', '-q', '-m', message)
  return git('-C', 'web', 'rev-parse', 'HEAD')
}
const push = (branch, token = writing.token) => git('-C', 'web', 'push', '-q', address(`${org}/web`, token), `HEAD:refs/heads/${branch}`)
const one = commit('bobbin/one', 'one.txt', 'one\ntwo\n', 'Add one')
push('bobbin/one')

// Branches and data.
found.branches = (await reader.rest.repos.listBranches(repo)).data.map(({ name }) => name)
const branch = (await reader.rest.repos.getBranch({ ...repo, branch: 'bobbin/one' })).data
found.branch = [branch.commit.sha === one, branch.protected, branch.commit.commit.message]
found.no_branch = await refused(() => reader.rest.repos.getBranch({ ...repo, branch: 'none' }))
found.ref = (await reader.rest.git.getRef({ ...repo, ref: 'heads/bobbin/one' })).data.object.sha === one
found.matching = (await reader.rest.git.listMatchingRefs({ ...repo, ref: 'heads/bob' })).data.map(({ ref }) => ref)
found.empty = await refused(() => all.rest.git.getRef({ owner: org, repo: 'empty', ref: 'heads/main' }))
const plain = (await reader.rest.git.getCommit({ ...repo, commit_sha: one })).data
found.commit = [plain.message, plain.author.name, plain.parents.length, plain.verification.reason]
const tree = (await reader.rest.git.getTree({ ...repo, tree_sha: plain.tree.sha, recursive: '1' })).data
found.tree = tree.tree.map(({ path, mode, type }) => [path, mode, type])
const blob = (await reader.rest.git.getBlob({ ...repo, file_sha: tree.tree.find(({ path }) => path === 'one.txt').sha })).data
found.blob = Buffer.from(blob.content, 'base64').toString()
const whole = (await reader.rest.repos.getCommit({ ...repo, ref: 'bobbin/one' })).data
found.stats = [whole.stats.total, whole.files[0].patch]
const spread = (await reader.rest.repos.compareCommitsWithBasehead({ ...repo, basehead: 'main...bobbin/one' })).data
found.compared = [spread.status, spread.ahead_by, spread.behind_by, spread.files.map(({ filename, status }) => [filename, status])]

// Pull requests.
const pulling = new Client({ auth: (await mint({ repository_ids: [made.id], permissions: { pull_requests: 'write' } })).token })
const merging = new Client({ auth: writing.token })
const ask = { ...repo, title: 'One', head: 'bobbin/one', base: 'main', body: 'Says @nobody', draft: true }
const pull = (await pulling.rest.pulls.create(ask)).data
found.pull = [pull.number, pull.draft, pull.user.login, pull.user.type, pull.mergeable, pull.commits, pull.head.label]
found.again = await refused(() => pulling.rest.pulls.create(ask))
found.no_base = await refused(() => pulling.rest.pulls.create({ ...ask, base: 'none' }))
found.no_head = await refused(() => pulling.rest.pulls.create({ ...ask, head: 'none' }))
found.no_commits = await refused(() => pulling.rest.pulls.create({ ...ask, head: 'main' }))
found.foreign = await refused(() => pulling.rest.pulls.create({ ...ask, head: 'ada:main' }))
const at = { ...repo, pull_number: pull.number }
const listed = async (query) => (await pulling.rest.pulls.list({ ...repo, ...query })).data.map(({ number }) => number)
found.by_head = [
  await listed({ head: `${org}:bobbin/one`, state: 'all' }), await listed({ head: `${org}:none` }), await listed({ head: 'none' }),
  await listed({ state: 'closed' }), await listed({ base: 'main' }),
]
const unknown = (await pulling.rest.pulls.get(at)).data
found.unknown = [unknown.mergeable, unknown.mergeable_state]
const seen = (await pulling.rest.pulls.get(at)).data
found.draft = [seen.mergeable, seen.mergeable_state, await refused(() => merging.rest.pulls.merge(at))]
found.files = (await pulling.rest.pulls.listFiles(at)).data.map(({ filename, additions, patch }) => [filename, additions, patch])
found.commits = (await pulling.rest.pulls.listCommits(at)).data.map(({ sha }) => sha === one)
found.diff = String((await pulling.rest.pulls.get({ ...at, mediaType: { format: 'diff' } })).data).split('\n')[0]
found.patched = (await pulling.rest.pulls.update({ ...at, title: 'One, better', body: 'More' })).data.title
const form = (path, fields, cookie = '') => fetch(`${given.git}${path}`, {
  method: 'POST', headers: { cookie }, body: new URLSearchParams(fields), redirect: 'manual',
})
const signed = await form('/login', { login: given.administrator, password: given.password, return_to: '/' })
const cookie = signed.headers.get('set-cookie').split(';')[0]
found.pressed = [
  (await form(`/${org}/web/pull/1`, { action: 'ready' }, cookie)).status, (await form(`/${org}/web/pull/1`, { action: 'ready' })).status,
]

// A person pushes; the pull request follows.
const two = commit('bobbin/one', 'two.txt', 'two\n', 'Add two')
push('bobbin/one', given.user_token)
await pulling.rest.pulls.get(at)
const moved = (await pulling.rest.pulls.get(at)).data
found.moved = [moved.head.sha === two, moved.commits, moved.draft, moved.mergeable_state]
found.late = await refused(() => merging.rest.pulls.merge({ ...at, sha: one }))
found.not_merged = await refused(() => pulling.rest.pulls.checkIfMerged(at))
found.merge_right = await refused(() => pulling.rest.pulls.merge(at))
const merged = (await merging.rest.pulls.merge({ ...at, sha: two })).data
found.merged = [merged.merged, merged.message, (await pulling.rest.pulls.checkIfMerged(at)).status]
const closed = (await pulling.rest.pulls.get(at)).data
found.closed = [closed.state, closed.merged, closed.merge_commit_sha === merged.sha, closed.merged_by.login, closed.commits]
found.reopened = await refused(() => pulling.rest.pulls.update({ ...at, state: 'open' }))
await merging.rest.git.deleteRef({ ...repo, ref: 'heads/bobbin/one' })
found.gone = await refused(() => merging.rest.git.deleteRef({ ...repo, ref: 'heads/bobbin/one' }))

// Squashed, conflicting, closed by a removed branch.
git('-C', 'web', 'fetch', '-q', address(`${org}/web`, reading.token), 'main')
git('-C', 'web', 'checkout', '-q', '--detach', 'FETCH_HEAD')
const base = git('-C', 'web', 'rev-parse', 'HEAD')
const open = async (name, file, text) => {
  git('-C', 'web', 'checkout', '-q', '--detach', base)
  commit(name, file, text, `Change ${file}`)
  push(name)
  return (await pulling.rest.pulls.create({ ...repo, title: name, head: name, base: 'main' })).data.number
}
const [first, second, third] = [await open('a', 'one.txt', 'a\n'), await open('b', 'one.txt', 'b\n'), await open('c', 'c.txt', 'c\n')]
await merging.rest.pulls.merge({ ...repo, pull_number: first, merge_method: 'squash' })
found.squashed = (await reader.rest.repos.getCommit({ ...repo, ref: 'main' })).data.commit.message
await pulling.rest.pulls.get({ ...repo, pull_number: second })
found.dirty = [(await pulling.rest.pulls.get({ ...repo, pull_number: second })).data.mergeable_state, await refused(() => merging.rest.pulls.merge({ ...repo, pull_number: second }))]
await merging.rest.pulls.merge({ ...repo, pull_number: third, merge_method: 'rebase' })
found.rebased = (await reader.rest.repos.getCommit({ ...repo, ref: 'main' })).data.parents.length
await merging.rest.git.deleteRef({ ...repo, ref: 'heads/b' })
found.headless = (await pulling.rest.pulls.get({ ...repo, pull_number: second })).data.state
const ref = (await merging.rest.git.createRef({ ...repo, ref: 'refs/heads/d', sha: base })).data
found.created = [ref.ref, await refused(() => merging.rest.git.createRef({ ...repo, ref: 'refs/heads/d', sha: base }))]
found.not_forward = await refused(() => merging.rest.git.updateRef({ ...repo, ref: 'heads/d', sha: one }))
await merging.rest.git.updateRef({ ...repo, ref: 'heads/d', sha: one, force: true })

// Rules.
const ruleset = (await ada.rest.repos.createRepoRuleset({
  ...repo, name: 'signed', target: 'branch', enforcement: 'active', conditions: { ref_name: { include: ['~ALL'], exclude: [] } },
  rules: [{ type: 'required_signatures' }, { type: 'pull_request', parameters: {
    dismiss_stale_reviews_on_push: false, require_code_owner_review: false, require_last_push_approval: false,
    required_approving_review_count: 1, required_review_thread_resolution: false,
  } }],
})).data
found.rules = (await reader.rest.repos.getBranchRules({ ...repo, branch: 'main' })).data.map(({ type }) => type)
found.rulesets = (await ada.rest.repos.getRepoRulesets(repo)).data.length
found.ruled_ref = await refused(() => merging.rest.git.createRef({ ...repo, ref: 'refs/heads/e', sha: base }))
await ada.rest.repos.deleteRepoRuleset({ ...repo, ruleset_id: ruleset.id })
await ada.rest.repos.updateBranchProtection({
  ...repo, branch: 'main', required_status_checks: { strict: true, contexts: ['ci'] }, enforce_admins: true,
  required_pull_request_reviews: null, restrictions: null,
})
found.protected = [(await reader.rest.repos.getBranch({ ...repo, branch: 'main' })).data.protected,
  (await ada.rest.repos.getBranchProtection({ ...repo, branch: 'main' })).data.required_status_checks.contexts]
const late = await open('late', 'late.txt', 'late\n')
await pulling.rest.pulls.get({ ...repo, pull_number: late })
found.blocked = [(await pulling.rest.pulls.get({ ...repo, pull_number: late })).data.mergeable_state, await refused(() => merging.rest.pulls.merge({ ...repo, pull_number: late }))]
await ada.rest.repos.deleteBranchProtection({ ...repo, branch: 'main' })

// People's rights.
const level = async (username) => (await reader.rest.repos.getCollaboratorPermissionLevel({ ...repo, username })).data.permission
await ada.rest.repos.addCollaborator({ ...repo, username: 'mallory', permission: 'triage' })
found.levels = [await level('ada'), await level('grace'), await level('mallory')]
await ada.rest.repos.removeCollaborator({ ...repo, username: 'mallory' })
found.nobody = [await level('mallory'), await refused(() => level('nobody'))]

// Renamed, transferred, archived.
await ada.rest.repos.update({ ...repo, name: 'shop' })
found.renamed = [(await reader.rest.repos.get(repo)).data.full_name, (await app.octokit.rest.apps.getRepoInstallation(repo)).data.id === given.installation,
  (await reader.request('GET /repositories/{id}', { id: made.id })).data.full_name, await listed({ state: 'open' })]
const shop = { owner: org, repo: 'shop' }
await ada.rest.repos.update({ ...shop, archived: true })
found.archived = [(await reader.rest.repos.get(shop)).data.archived, await refused(() => pulling.rest.pulls.create({ ...shop, title: 'A', head: 'late', base: 'main' }))]
await ada.rest.repos.update({ ...shop, archived: false })
const gift = (await ada.rest.repos.createInOrg({ org, name: 'gift', private: true })).data
await ada.rest.repos.transfer({ owner: org, repo: 'gift', new_owner: 'ada' })
found.transferred = [(await ada.rest.repos.get({ owner: org, repo: 'gift' })).data.full_name, await refused(() => all.rest.repos.get({ owner: org, repo: 'gift' })), gift.id > 0]
await ada.rest.repos.delete({ owner: 'ada', repo: 'gift' })

// Ended: tokens, suspension.
await reader.request('DELETE /installation/token')
found.revoked = [await refused(() => reader.rest.repos.get(shop)), (await merging.rest.repos.get(shop)).status]
await app.octokit.rest.apps.suspendInstallation({ installation_id: given.installation })
found.suspended = [await refused(() => mint({})), await refused(() => merging.rest.repos.get(shop)),
  (await app.octokit.rest.apps.getInstallation({ installation_id: given.installation })).data.suspended_at !== null]
await app.octokit.rest.apps.unsuspendInstallation({ installation_id: given.installation })
found.back = (await merging.rest.repos.get(shop)).status
found.limits = (await merging.rest.rateLimit.get()).data.rate.limit

// Webhooks that were sent.
const until = async (look) => {
  for (let tries = 0; tries < 500; tries += 1) {
    const seen = await look()
    if (seen) return seen
    await new Promise((resolve) => { setTimeout(resolve, 20) })
  }
  throw new Error(`waited too long for ${look}`)
}
const sent = async () => (await app.octokit.rest.apps.listWebhookDeliveries({ per_page: 100 })).data
const ready = await until(async () => (await sent()).find(({ event, action }) => event === 'pull_request' && action === 'ready_for_review'))
const delivered = (await app.octokit.rest.apps.getWebhookDelivery({ delivery_id: ready.id })).data
found.delivered = [ready.status, delivered.request.payload.pull_request.number, delivered.request.headers['X-GitHub-Event']]
found.redelivered = (await app.octokit.rest.apps.redeliverWebhookDelivery({ delivery_id: ready.id })).status
found.no_delivery = await refused(() => app.octokit.rest.apps.getWebhookDelivery({ delivery_id: 1 }))

finish()

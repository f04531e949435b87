// Walks what happens to a pull request until it is merged: checks, reviews, comments, merges, with GitHub's own client.
// Prints what it found, and every exchange. What is right says the test beside it.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { address, Client, finish, folder, found, git, given, refused } from './client.mjs'

const repo = { owner: given.organization, repo: 'web' }
const ada = new Client({ auth: given.user_token })
const bobbin = new Client({ auth: given.installation_token })
const ci = new Client({ auth: given.ci_token })
const eve = new Client({ auth: given.eve_token })

git('clone', '-q', address(`${repo.owner}/web`, given.user_token), 'web')
const push = (branch, file, text) => {
  writeFileSync(join(folder, 'web', file), text)
  git('-C', 'web', 'add', '-A')
  git('-C', 'web', 'commit', '-q', '-m', `Change ${file}`)
  git('-C', 'web', 'push', '-q', address(`${repo.owner}/web`, given.user_token), `HEAD:refs/heads/${branch}`)
  return git('-C', 'web', 'rev-parse', 'HEAD')
}
const sha = push('bobbin/a', 'a.txt', 'one\ntwo\n')
const { number } = (await bobbin.rest.pulls.create({ ...repo, title: 'A', head: 'bobbin/a', base: 'main' })).data
const at = { ...repo, pull_number: number }
const issue = { ...repo, issue_number: number }

// What Actions says, a test decides.
const said = { repository: `${repo.owner}/web`, sha, name: 'test', conclusion: 'failure', log: 'one failed\nthe end' }
await fetch(`${given.api}/_control/checks`, {
  method: 'POST', headers: { authorization: `Bearer ${given.control_key}` }, body: JSON.stringify(said),
})

// Checks, as an app reports them.
const run = (await ci.rest.checks.create({ ...repo, name: 'build', head_sha: sha, status: 'queued' })).data
const ended = (await ci.rest.checks.update({
  ...repo, check_run_id: run.id, conclusion: 'failure', output: { title: 'No', summary: 'It fails', annotations: [{
    path: 'a.txt', start_line: 1, end_line: 1, annotation_level: 'failure', message: 'Here',
  }] },
})).data
found.check = [run.status, ended.status, ended.conclusion, ended.output.annotations_count]
found.others = await refused(() => eve.rest.checks.create({ ...repo, name: 'build', head_sha: sha }))
const check = { ...repo, check_run_id: run.id }
found.annotations = (await bobbin.rest.checks.listAnnotations(check)).data.map(({ path, message }) => [path, message])
found.one = (await bobbin.rest.checks.get(check)).data.app.slug
found.of_commit = (await bobbin.paginate(bobbin.rest.checks.listForRef, { ...repo, ref: sha })).map(({ name }) => name).sort()
const suites = (await bobbin.rest.checks.listSuitesForRef({ ...repo, ref: sha })).data.check_suites
found.suites = suites.map(({ app, status, conclusion }) => [app.slug, status, conclusion]).sort()
const suite = { ...repo, check_suite_id: run.check_suite.id }
found.of_suite = (await bobbin.rest.checks.listForSuite(suite)).data.total_count
found.asked_again = [(await ci.rest.checks.rerequestRun(check)).status, (await ci.rest.checks.rerequestSuite(suite)).status]
await ci.rest.repos.createCommitStatus({ ...repo, sha, state: 'success', context: 'deploy', description: 'Done' })
found.status = (await bobbin.rest.repos.getCombinedStatusForRef({ ...repo, ref: sha })).data.state
found.statuses = (await bobbin.rest.repos.listCommitStatusesForRef({ ...repo, ref: sha })).data.map(({ context }) => context)

// Actions; the client follows to the log, and leaves its token behind.
const runs = (await bobbin.rest.actions.listWorkflowRunsForRepo({ ...repo, head_sha: sha })).data.workflow_runs
const workflow = { ...repo, run_id: runs[0].id }
found.runs = runs.map(({ name, event, conclusion, run_attempt }) => [name, event, conclusion, run_attempt])
found.run = (await bobbin.rest.actions.getWorkflowRun(workflow)).data.head_sha === sha
const job = (await bobbin.rest.actions.listJobsForWorkflowRun(workflow)).data.jobs[0]
const steps = (await bobbin.rest.actions.getJobForWorkflowRun({ ...repo, job_id: job.id })).data.steps
found.job = [job.name, job.conclusion, steps.filter(({ conclusion }) => conclusion === 'failure').map(({ name }) => name)]
const log = (await bobbin.rest.actions.downloadJobLogsForWorkflowRun({ ...repo, job_id: job.id })).data
found.log = String(log).split('\n')[0].replace(/^\S+Z /, '')
found.rerun_right = await refused(() => bobbin.rest.actions.reRunWorkflowFailedJobs(workflow))
found.rerun = (await ci.rest.actions.reRunWorkflowFailedJobs(workflow)).status
found.attempts = (await ci.rest.actions.listJobsForWorkflowRunAttempt({ ...workflow, attempt_number: 1 })).data.jobs.map(({ conclusion }) => conclusion)
found.cancelled = (await ci.rest.actions.cancelWorkflowRun(workflow)).status
found.job_again = (await ci.rest.actions.reRunJobForWorkflowRun({
  ...repo, job_id: (await ci.rest.actions.listJobsForWorkflowRun(workflow)).data.jobs[0].id,
})).status

// Reviews and threads.
await bobbin.rest.pulls.requestReviewers({ ...at, reviewers: ['eve'] })
found.asked = (await bobbin.rest.pulls.listRequestedReviewers(at)).data.users.map(({ login }) => login)
await bobbin.rest.pulls.removeRequestedReviewers({ ...at, reviewers: ['eve'] })
found.own = await refused(() => bobbin.rest.pulls.createReview({ ...at, event: 'APPROVE' }))
const base = git('-C', 'web', 'rev-parse', `${sha}~1`)
const outside = { path: 'a.txt', line: 3, side: 'RIGHT', body: 'Where?' }
const remarked = { ...at, event: 'COMMENT', body: 'Well' }
found.strange = await refused(() => bobbin.rest.pulls.createReview({ ...remarked, commit_id: base }))
found.outside = await refused(() => bobbin.rest.pulls.createReview({ ...remarked, commit_id: sha, comments: [outside] }))
const review = (await eve.rest.pulls.createReview({
  ...at, event: 'REQUEST_CHANGES', body: 'Not so', comments: [{ path: 'a.txt', line: 2, side: 'RIGHT', body: 'Why?' }],
})).data
const top = (await bobbin.rest.pulls.listCommentsForReview({ ...at, review_id: review.id })).data[0]
found.review = [review.state, top.body, (await bobbin.rest.pulls.listReviews(at)).data.length]
const reply = (await bobbin.rest.pulls.createReplyForReviewComment({ ...at, comment_id: top.id, body: 'Done' })).data
found.reply = [reply.in_reply_to_id === top.id, reply.path, reply.line]
found.reply_to_reply = await refused(() => bobbin.rest.pulls.createReplyForReviewComment({ ...at, comment_id: reply.id, body: 'No' }))
const single = (await eve.rest.pulls.createReviewComment({ ...at, commit_id: sha, path: 'a.txt', line: 1, side: 'RIGHT', body: 'And?' })).data
found.comments = (await bobbin.rest.pulls.listReviewComments(at)).data.map(({ body }) => body)
const comment = { ...repo, comment_id: single.id }
found.edited = (await eve.rest.pulls.updateReviewComment({ ...comment, body: 'And so?' })).data.body
found.read = (await bobbin.rest.pulls.getReviewComment(comment)).data.diff_hunk
const seen = async () => await bobbin.rest.reactions.createForPullRequestReviewComment({ ...comment, content: 'eyes' })
const eyes = await seen()
found.seen = [eyes.status, (await seen()).status]
await bobbin.rest.reactions.deleteForPullRequestComment({ ...comment, reaction_id: eyes.data.id })
await eve.rest.pulls.deleteReviewComment(comment)
found.removed = await refused(() => bobbin.rest.pulls.getReviewComment(comment))
found.dismissed = (await ada.rest.pulls.dismissReview({ ...at, review_id: review.id, message: 'Settled' })).data.state

// Comments below.
const remark = (await bobbin.rest.issues.createComment({ ...issue, body: 'Hello' })).data
const below = { ...repo, comment_id: remark.id }
found.remark = [remark.user.type, remark.performed_via_github_app.slug]
found.remarks = (await bobbin.rest.issues.listComments(issue)).data.length
await bobbin.rest.issues.updateComment({ ...below, body: 'Hello again' })
found.remark_read = (await bobbin.rest.issues.getComment(below)).data.body
const heart = (await bobbin.rest.reactions.createForIssueComment({ ...below, content: 'heart' })).data
await bobbin.rest.reactions.deleteForIssueComment({ ...below, reaction_id: heart.id })
found.hooray = (await bobbin.rest.reactions.createForIssue({ ...issue, content: 'hooray' })).status
await bobbin.rest.issues.deleteComment(below)
found.remark_gone = await refused(() => bobbin.rest.issues.getComment(below))

// In one request.
const look = await bobbin.graphql(given.look, { ...repo, owner: repo.owner, name: repo.repo, number })
found.look = [look.repository.pullRequest.headRefOid === sha, look.repository.pullRequest.reviewThreads.totalCount]
const unknown = async () => {
  try {
    await bobbin.graphql('query { viewer { login } }')
    return 'not refused'
  } catch (error) {
    return error.name
  }
}
found.unknown = await unknown()

// The base moves, comes into the head, and the whole into the base.
git('-C', 'web', 'checkout', '-q', '--detach', 'origin/main')
push('main', 'b.txt', 'b\n')
const stale = { ...at, expected_head_sha: '0'.repeat(40) }
found.stale = await refused(() => bobbin.rest.pulls.updateBranch(stale))
found.updated = (await bobbin.rest.pulls.updateBranch({ ...at, expected_head_sha: sha })).status
const tries = [(await bobbin.rest.pulls.get(at)).data, (await bobbin.rest.pulls.get(at)).data]
found.tries = tries.map(({ mergeable, mergeable_state }) => [mergeable, mergeable_state])
const head = tries[1].head.sha
found.of_head = (await bobbin.rest.repos.listPullRequestsAssociatedWithCommit({ ...repo, commit_sha: head })).data.map((one) => one.number)
found.moved = await refused(() => bobbin.rest.pulls.merge({ ...at, sha }))
found.merged = (await bobbin.rest.pulls.merge({ ...at, sha: head })).data.merged

finish()

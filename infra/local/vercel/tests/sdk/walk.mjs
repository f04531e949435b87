// Walks what Bobbin uses of Vercel Sandbox, and what its user expects besides, with Vercel's own client. Reads what to talk to
// from standard input; prints what it found. What is right says the test beside it.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Writable } from 'node:stream'

const given = JSON.parse(readFileSync(0, 'utf8'))
// The packages lie in the tests' cache, not beside this file.
const { Sandbox, Snapshot } = createRequire(`${given.packages}/package.json`)('@vercel/sandbox')

// The client has one address built in; everything else of a request goes out as the client made it.
const local = (url, options) => fetch(url.replace('https://vercel.com/api', given.api), options)
const account = { token: given.token, teamId: given.team, projectId: given.project, fetch: local }
const found = {}

const refused = async (what) => {
  try {
    await what()
    return 'not refused'
  } catch (error) {
    return { status: error.response?.status, code: error.json?.error?.code, message: error.json?.error?.message }
  }
}
const control = (path, body) =>
  fetch(given.api.replace('/api', path), {
    method: 'POST',
    headers: { authorization: `Bearer ${given.token}` },
    body: JSON.stringify(body),
  })
const collected = () => {
  const pieces = []
  const write = (piece, _, done) => { pieces.push(piece.toString()); done() }
  return { pieces, stream: new Writable({ write }) }
}
const until = async (condition) => {
  for (let tries = 0; tries < 500; tries += 1) {
    const seen = await condition().catch(() => undefined)
    if (seen) return seen
    await new Promise((resolve) => { setTimeout(resolve, 20) })
  }
  throw new Error(`waited too long for ${condition}`)
}

const asked = {
  ...account, name: 'walk-one', ports: [4096, 8000], timeout: 600_000, resources: { vcpus: 2 }, persistent: true,
  env: { FROM_CREATE: 'yes' }, tags: { bobbin: 'dev', thread: 'discord:1:2' }, snapshotExpiration: 0,
  keepLastSnapshots: { count: 1 }, networkPolicy: { allow: { 'api.example.com': [{
    match: { headers: [{ key: { exact: 'x-api-key' }, value: { exact: 'stand-in' } }] },
    transform: [{ headers: { 'x-api-key': 'real' } }],
  }], '*': [] } },
}
const one = await Sandbox.create(asked)
found.created = {
  name: one.name, status: one.status, persistent: one.persistent, timeout: one.timeout, vcpus: one.vcpus, memory: one.memory,
  tags: one.tags, ports: one.routes.map((route) => route.port), keep: one.keepLastSnapshots, expiration: one.snapshotExpiration,
  policy: one.networkPolicy, expires: one.expiresAt - one.createdAt >= 600_000, source: one.sourceSnapshotId ?? null,
}
found.taken = await refused(() => Sandbox.create(asked))
found.bad_name = await refused(() => Sandbox.create({ ...asked, name: 'a b' }))
found.many_tags = await refused(() => Sandbox.create({ ...asked, name: 'x', tags: { a: '1', b: '2', c: '3', d: '4', e: '5', f: '6' } }))
found.unknown = await refused(() => Sandbox.get({ ...account, name: 'nobody' }))
found.token = await refused(() => Sandbox.get({ ...account, token: 'another', name: 'walk-one' }))
found.project = await refused(() => Sandbox.get({ ...account, projectId: 'prj_other', name: 'walk-one' }))

// Commands.
const ran = await one.runCommand({
  cmd: 'sh', args: ['-c', 'echo "$FROM_CREATE $MINE"; printf grün >&2; exit 3'], env: { MINE: 'too' },
})
found.ran = { exit: ran.exitCode, out: await ran.stdout(), err: await ran.stderr(), timed: ran.durationMs >= 0 }
const plain = await one.runCommand('echo', ['$HOME', 'a b'])
found.no_shell = await plain.stdout()
found.no_program = (await one.runCommand('no-such-program')).exitCode
const killed = await one.runCommand({ cmd: 'sleep', args: ['60'], timeoutMs: 300 })
found.timed_out = killed.exitCode !== 0
const where = await one.runCommand({ cmd: 'pwd', cwd: '/tmp' })
found.cwd = [(await (await one.runCommand('pwd')).stdout()).trim() === one.cwd, await where.stdout()]

// What is printed comes while the command runs.
const heard = collected()
const slow = one.runCommand({
  cmd: 'sh', args: ['-c', 'echo first; while [ ! -e go ]; do sleep 0.02; done; echo second'], stdout: heard.stream,
})
await until(async () => heard.pieces.join('') === 'first\n')
await one.writeFiles([{ path: 'go', content: Buffer.from('') }])
found.live = [(await slow).exitCode, heard.pieces.join('')]

// Detached.
const detached = await one.runCommand({ cmd: 'sh', args: ['-c', 'echo one; echo two >&2; sleep 0.2; exit 4'], detached: true })
found.detached = { exit: detached.exitCode, waited: (await detached.wait()).exitCode, both: (await detached.output('both')).length }
const again = await one.getCommand(detached.cmdId)
const lines = []
for await (const line of again.logs()) lines.push([line.stream, line.data])
found.logs = lines.sort()
const endless = await one.runCommand({ cmd: 'sleep', args: ['1000'], detached: true })
await endless.kill('SIGTERM')
found.killed = (await endless.wait()).exitCode

// Files.
await one.writeFiles([
  { path: 'deep/er/file.txt', content: Buffer.from('kept') },
  { path: `${one.cwd}/run.sh`, content: '#!/bin/sh\necho ran', mode: 0o755 },
])
found.files = [
  (await one.readFileToBuffer({ path: 'deep/er/file.txt' })).toString(), await one.readFileToBuffer({ path: 'nothing' }),
  await (await one.runCommand('./run.sh')).stdout(),
]
// Of the machine, not of the sandbox's directory.
const elsewhere = '/tmp/bobbin-absolute/file.txt'
found.absolute = await refused(() => one.writeFiles([{ path: elsewhere, content: Buffer.from('elsewhere'), mode: 0o600 }]))
if (found.absolute === 'not refused') {
  found.absolute = [
    (await one.readFileToBuffer({ path: elsewhere })).toString(),
    await (await one.runCommand('stat', ['-c', '%a', elsewhere])).stdout(),
  ]
}
await one.mkDir('folder')
found.folder_again = (await refused(() => one.mkDir('folder'))).status
found.folder_deep = (await refused(() => one.mkDir('a/b/c'))).status

// Routes, which anybody reaches.
const serving = ['-m', 'http.server', '8000', '--bind', '127.0.0.1']
await one.runCommand({ cmd: 'python3', args: serving, detached: true })
const reach = (sandbox) => fetch(`${sandbox.routes.find((route) => route.port === 8000).url}/deep/er/file.txt`)
found.route = await until(async () => (await reach(one)).text())

// Time.
const before = one.currentSession().timeout
await one.extendTimeout(60_000)
found.extended = one.currentSession().timeout - before
await one.update({ tags: { bobbin: 'prod' }, timeout: 700_000 })
found.updated = [one.tags, one.timeout]
found.policy = await one.updateNetworkPolicy('deny-all')

// A stop keeps the disk; the next use begins another session.
const [session, routes] = [one.currentSession().sessionId, one.routes.map((route) => route.url)]
const stopped = await one.stop()
found.stopped = [stopped.status, stopped.snapshot?.status, one.status]
const seen = await Sandbox.get({ ...account, name: 'walk-one' })
found.seen = [seen.status, seen.currentSnapshotId === stopped.snapshot.id]
found.exec_stopped = await refused(() => seen.currentSession().runCommand('true'))
let resumes = 0
const back = await Sandbox.get({ ...account, name: 'walk-one', resume: true, onResume: async () => { resumes += 1 } })
found.back = {
  resumes, new_session: back.currentSession().sessionId !== session, new_routes: !back.routes.some(({ url }) => routes.includes(url)),
  timeout: back.currentSession().timeout, file: (await back.readFileToBuffer({ path: 'deep/er/file.txt' })).toString(),
  servers: (await back.runCommand('sh', ['-c', 'ps ax | grep -c "[h]ttp.server"'])).exitCode, from: back.sourceSnapshotId === stopped.snapshot.id,
  env: await (await back.runCommand('sh', ['-c', 'echo $FROM_CREATE'])).stdout(),
}
// The client resumes by itself.
await one.stop().catch(() => back.stop())
found.by_itself = await (await one.runCommand('cat', ['deep/er/file.txt'])).stdout()

// Snapshots.
const snapshot = await one.snapshot({ expiration: 0 })
found.snapshot = [snapshot.status, snapshot.sizeBytes > 0, snapshot.expiresAt ?? null]
found.kept = (await Snapshot.list({ ...account, name: 'walk-one' })).snapshots.map(({ id }) => id === snapshot.snapshotId)
found.got = (await Snapshot.get({ ...account, snapshotId: snapshot.snapshotId })).status
const two = await Sandbox.create({ ...account, name: 'walk-two', source: { type: 'snapshot', snapshotId: snapshot.snapshotId } })
found.from_snapshot = [(await two.readFileToBuffer({ path: 'deep/er/file.txt' })).toString(), two.sourceSnapshotId === snapshot.snapshotId]
const twin = await Sandbox.fork({ ...account, sourceSandbox: 'walk-one', name: 'walk-twin', tags: { team: 'blue' } })
found.forked = {
  file: (await twin.readFileToBuffer({ path: 'deep/er/file.txt' })).toString(), timeout: twin.timeout, tags: twin.tags,
  ports: twin.routes.map((route) => route.port), env: await (await twin.runCommand('sh', ['-c', 'echo $FROM_CREATE'])).stdout(),
}
found.fork_taken = (await refused(() => Sandbox.fork({ ...account, sourceSandbox: 'walk-one', name: 'walk-twin' }))).status
found.fork_unknown = (await refused(() => Sandbox.fork({ ...account, sourceSandbox: 'nobody' }))).status
await twin.delete()
await snapshot.delete()
found.deleted_snapshot = snapshot.status
const gone = { ...account, name: 'walk-three', source: { type: 'snapshot', snapshotId: snapshot.snapshotId } }
found.from_deleted = await refused(() => Sandbox.create(gone))
found.lost = await refused(() => Sandbox.get({ ...account, name: 'walk-one', resume: true }))
const three = await Sandbox.getOrCreate({ ...account, name: 'walk-three' })
found.free = [three.status, (await Sandbox.getOrCreate({ ...account, name: 'walk-three' })).currentSession().sessionId === three.currentSession().sessionId]

// Lists.
await three.update({ tags: { team: 'red' } })
const names = async (query) => (await (await Sandbox.list({ ...account, ...query })).toArray()).map(({ name }) => name)
found.listed = {
  all: (await names({})).sort(), pages: await names({ limit: 1, sortBy: 'name', sortOrder: 'asc', namePrefix: 'walk-t' }),
  tagged: await names({ tags: { team: 'red' } }), prefix_alone: (await refused(() => names({ namePrefix: 'walk' }))).status,
}

// Faults that the client goes on after.
await control('/_control/faults', { faults: [
  { fault: 'answer', operation: 'get', status: 503 }, { fault: 'answer', operation: 'get', status: 429, retry_after: 1 },
] })
found.after_faults = (await Sandbox.get({ ...account, name: 'walk-two' })).status

await two.delete()
found.deleted = await refused(() => Sandbox.get({ ...account, name: 'walk-two' }))
await one.delete()
await three.delete()
found.left = await names({})

process.stdout.write(JSON.stringify(found))
process.exit(0)

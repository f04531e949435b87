// Walks the tools of a sandbox with the protocol's own client. Reads what to talk to from standard input; prints what it
// found. What is right says the test beside it.

import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

const given = JSON.parse(readFileSync(0, 'utf8'))
// The packages lie in the tests' cache, not beside this file.
const sdk = (name) => import(pathToFileURL(`${given.packages}/node_modules/@modelcontextprotocol/sdk/dist/esm/client/${name}.js`))
const { Client } = await sdk('index')
const { StreamableHTTPClientTransport } = await sdk('streamableHttp')

const connected = async (bearer) => {
  const client = new Client({ name: 'walk', version: '1' })
  const headers = { authorization: `Bearer ${bearer}` }
  const transport = new StreamableHTTPClientTransport(new URL(given.url), { requestInit: { headers } })
  await client.connect(transport)
  return { client, transport }
}
const refused = async (bearer) => {
  try {
    await connected(bearer)
    return 'not refused'
  } catch (error) {
    return { code: error.code, message: error.message }
  }
}

const { client, transport } = await connected(given.bearer)
const call = (name, args) => client.callTool({ name, arguments: args })
const found = {
  version: transport.protocolVersion,
  server: client.getServerVersion()?.name,
  capabilities: client.getServerCapabilities(),
  has_session: Boolean(transport.sessionId),
}
found.tools = (await client.listTools()).tools.map((tool) => tool.name)
found.ping = await client.ping()
found.written = await call('write_file', { path: 'notes.txt', content: 'one\ntwo\n' })
found.read = await call('read_file', { path: 'notes.txt' })
found.ran = await call('run_command', { cmd: 'wc -l <notes.txt' })
found.missing = await call('read_file', { path: 'nowhere.txt' })
found.unknown = await call('format_disk', {}).catch((error) => ({ code: error.code }))
await client.close()
found.stale = await refused(given.stale)
found.forged = await refused(given.forged)
console.log(JSON.stringify(found))

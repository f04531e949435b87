// OpenRouter's own client as its user has it: what to talk to comes from standard input. It refuses an answer that is
// not as it is described.

import { readFileSync } from 'node:fs'

const given = JSON.parse(readFileSync(0, 'utf8'))
// The package lies in the tests' cache, not beside this file.
const { OpenRouter } = await import(`${given.packages}/node_modules/@openrouter/sdk/esm/index.js`)
const client = (apiKey) => new OpenRouter({ apiKey, serverURL: given.api, retryConfig: { strategy: 'none' } })
const { apiKeys } = client(given.management_key)
const refused = async (what) => {
  try {
    await what()
    return 'not refused'
  } catch (error) {
    return [error.constructor.name, error.statusCode, error.error?.message]
  }
}
const found = {}

const requestBody = {
  name: given.name, limit: 2.5, limitReset: null, includeByokInLimit: true, expiresAt: new Date(given.expires_ms),
}
const made = await apiKeys.create({ requestBody })
const { hash } = made.data
found.made = [made.data.name, made.data.limit, made.data.limitRemaining, made.data.expiresAt.getTime() === given.expires_ms]
found.shown_once = [made.key.startsWith('sk-or-v1-'), JSON.stringify(await apiKeys.list()).includes(made.key)]
const twin = await apiKeys.create({ requestBody })
found.twins = (await apiKeys.list({ includeDisabled: true, offset: 0 })).data.filter((one) => one.name === given.name).length
found.deleted = (await apiKeys.delete({ hash: twin.data.hash })).deleted

const renamed = { name: `${given.name} again`, limit: 1.5 }
await apiKeys.update({ hash, requestBody: renamed })
const changed = (await apiKeys.get({ hash })).data
found.changed = [changed.name, changed.limit, changed.includeByokInLimit]
await apiKeys.update({ hash, requestBody: { name: given.name, limit: null } })
const unlimited = (await apiKeys.get({ hash })).data
found.unlimited = [unlimited.limit, unlimited.limitRemaining]

const own = (await client(made.key).apiKeys.getCurrentKeyMetadata()).data
found.own = [own.isManagementKey, own.label.includes(made.key)]
found.no_manager = await refused(() => client(made.key).apiKeys.list())
found.unknown = await refused(() => apiKeys.get({ hash: 'unknown' }))
console.log(JSON.stringify(found))

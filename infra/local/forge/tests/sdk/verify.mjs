// Whether GitHub's own library takes webhooks as GitHub's. Reads them from standard input.

import { readFileSync } from 'node:fs'

const given = JSON.parse(readFileSync(0, 'utf8'))
const { Webhooks } = await import(`${given.packages}/node_modules/@octokit/webhooks/dist-bundle/index.js`)
const own = new Webhooks({ secret: given.secret })
const other = new Webhooks({ secret: `${given.secret}x` })
const judged = []
for (const { body, signature } of given.deliveries) {
  judged.push([await own.verify(body, signature), await other.verify(body, signature), await own.verify(`${body} `, signature)])
}
process.stdout.write(JSON.stringify(judged))

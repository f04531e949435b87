// Whether what a forge answered to documents has the shape of GitHub's own schema. Reads them from standard input: each
// document is executed over the data that came back.

import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'

const given = JSON.parse(readFileSync(0, 'utf8'))
const { buildSchema, execute, parse, validate } = await import(`${given.packages}/node_modules/graphql/index.mjs`)
const text = readFileSync(`${given.packages}/node_modules/@octokit/graphql-schema/schema.graphql`, 'utf8')
// The published text declares some fields twice.
const schema = buildSchema(text, { assumeValidSDL: true })
const judged = []
for (const { query, variables, data } of given.answers) {
  const document = parse(query)
  const wrong = validate(schema, document).map(({ message }) => message)
  const { data: executed, errors } = await execute({
    schema, document, rootValue: data, variableValues: variables, typeResolver: ({ __typename }) => __typename ?? 'User',
    // The answer has aliases for names.
    fieldResolver: (answered, _arguments, _context, { path }) => answered[path.key],
  })
  wrong.push(...(errors ?? []).map(({ message, path }) => `${path?.join('.')}: ${message}`))
  const plain = JSON.parse(JSON.stringify(executed))
  if (!isDeepStrictEqual(plain, data)) wrong.push('other data than was answered')
  judged.push(wrong)
}
process.stdout.write(JSON.stringify(judged))

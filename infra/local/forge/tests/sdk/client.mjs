// GitHub's own client as these walks use it: what to talk to comes from standard input, and every exchange is written
// down.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const given = JSON.parse(readFileSync(0, 'utf8'))
// The packages lie in the tests' cache, not beside this file.
const { App, Octokit } = await import(`${given.packages}/node_modules/octokit/dist-bundle/index.js`)

export const exchanges = []
export const found = {}
const parsed = (text) => { try { return JSON.parse(text) } catch { return null } }
// Everything that the client sends goes out as the client made it, and is written down.
const recorded = async (url, options) => {
  const answer = await fetch(url, options)
  const text = await answer.clone().text()
  const target = new URL(url)
  exchanges.push({
    method: options?.method ?? 'GET', path: target.pathname, request: parsed(options?.body ?? ''), status: answer.status,
    answer: parsed(text), has_answer: text !== '', moved: answer.redirected,
    is_diff: (answer.headers.get('content-type') ?? '').includes('diff'),
    limits: ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'].every((name) => answer.headers.has(name)),
  })
  return answer
}
export const Client = Octokit.defaults({
  baseUrl: given.api, userAgent: 'bobbin-forge-check', request: { fetch: recorded }, retry: { enabled: false },
  throttle: { enabled: false }, log: { debug() {}, info() {}, warn() {}, error() {} },
})
export const refused = async (what) => {
  try {
    await what()
    return 'not refused'
  } catch (error) {
    const errors = error.response?.data?.errors?.map((one) => typeof one === 'string' ? one : one.message ?? `${one.field} ${one.code}`)
    return [error.status, error.response?.data?.message, ...(errors ?? [])]
  }
}

export const folder = mkdtempSync(join(tmpdir(), 'bobbin-forge-walk-'))
const environment = { PATH: process.env.PATH, HOME: folder, GIT_CONFIG_NOSYSTEM: '1', GIT_TERMINAL_PROMPT: '0' }
export const git = (...args) => execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', ...args], {
  cwd: folder, env: environment, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'],
}).trim()
export const address = (repository, token) => `${given.git.replace('://', `://x-access-token:${token}@`)}/${repository}.git`
// Prints what was found.
export const finish = () => {
  rmSync(folder, { recursive: true })
  process.stdout.write(JSON.stringify({ found, exchanges }), () => process.exit(0))
}
export { App }

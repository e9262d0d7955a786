// Runs blocks of JavaScript, one for each line of the input, and answers what each has printed. What a block defines at
// its top, the next ones know, as in the console of a browser.

import { createInterface } from 'node:readline'
import { createContext, runInContext } from 'node:vm'

const SHARED = ['fetch', 'Headers', 'URLSearchParams', 'URL', 'crypto', 'btoa', 'setTimeout', 'TextDecoder', 'TextEncoder']
const known = createContext(Object.fromEntries(SHARED.map((name) => [name, globalThis[name]])))

for await (const line of createInterface({ input: process.stdin })) {
  const { code, variables } = JSON.parse(line)
  const printed = []
  Object.assign(known, variables, { console: { log: (...values) => printed.push(values) } })
  // A block may await: it is a function, and what it declares at the left margin outlives it.
  const named = code.matchAll(/^(?:const|let|(?:async )?function\*?) (\w+)/gm)
  const kept = [...new Set([...named].map(([, name]) => name))].map((name) => `globalThis.${name} = ${name};`).join(' ')
  try {
    await runInContext(`(async () => {\n${code}\n;${kept} })()`, known)
    process.stdout.write(`${JSON.stringify({ printed })}\n`)
  } catch (failure) {
    process.stdout.write(`${JSON.stringify({ failure: String(failure?.stack ?? failure) })}\n`)
  }
}

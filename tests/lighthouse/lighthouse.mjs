// What Lighthouse says of the public pages of a running service (`make test-lighthouse`): a phone, four times as slow as
// this machine. Run it while the machine does nothing else: the blocking time is measured.

import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const ORIGIN = process.env.ORIGIN ?? 'http://127.0.0.1:8000'
const PAGES = ['/', '/docs/first-request', '/docs', '/docs/versions', '/session/login']
const LEAST = 0.95
// Without the sandbox, as root can; without the hosts of Chromium's maker.
const FLAGS = '--headless=new --no-sandbox --disable-background-networking --disable-component-update'

function measure(page) {
  const entry = fileURLToPath(new URL('node_modules/lighthouse/cli/index.js', import.meta.url))
  const options = ['--quiet', '--output=json', `--chrome-flags=${FLAGS}`]
  const report = execFileSync(process.execPath, [entry, `${ORIGIN}${page}`, ...options], { maxBuffer: 1 << 28 })
  return JSON.parse(report)
}

let failed = false
for (const page of PAGES) {
  const { categories, audits } = measure(page)
  console.log(page, Object.values(categories).map(({ id, score }) => `${id} ${score}`).join(', '))
  for (const { id, score, auditRefs } of Object.values(categories)) {
    if (score >= LEAST) continue
    failed = true
    const lost = auditRefs.filter((one) => one.weight && (audits[one.id].score ?? 1) < 1).map((one) => audits[one.id])
    for (const { title, displayValue = '' } of lost) console.log(`  ${id}: ${title} ${displayValue}`)
  }
}
process.exit(failed ? 1 : 0)

// The main ways of people in Firefox, which Puppeteer drives by WebDriver BiDi: `node firefox.mjs`, with ORIGIN, EMAIL,
// PASSWORD, KEY and FIREFOX in the environment. Prints each way that works; what fails ends it.

import assert from 'node:assert/strict'
import puppeteer from 'puppeteer-core'

const { ORIGIN, EMAIL, PASSWORD, KEY, FIREFOX } = process.env

const browser = await puppeteer.launch({ browser: 'firefox', executablePath: FIREFOX, headless: true })
const faults = []
// Firefox reads the `next` of a Link header ahead. The policy refuses that, and Firefox says so.
const READ_AHEAD = /blocked the loading of a resource \(default-src\) at \S+[?&](cursor|page)=/
const note = (fault) => READ_AHEAD.test(fault) || faults.push(fault)

async function openPage() {
  const page = await browser.newPage()
  page.setDefaultTimeout(20_000)
  page.on('pageerror', (error) => note(`exception: ${error.message}`))
  page.on('console', (message) => {
    if (message.type() === 'error') note(message.text())
  })
  return page
}

const page = await openPage()

const go = (path) => page.goto(ORIGIN + path)
const element = (selector) => page.waitForSelector(selector, { visible: true })
const text = (selector) => page.$eval(selector, (one) => one.textContent.trim())
// Waits until it stands still: what is loaded above it would move it away.
const click = (selector) => page.locator(selector).click()
const clickTo = (selector) => Promise.all([page.waitForNavigation(), click(selector)])
const fill = async (selector, value) => {
  const field = await element(selector)
  await field.evaluate((one) => {
    one.value = ''
    one.focus()
  })
  await field.type(value)
}
const shows = (selector, expected) =>
  page.waitForFunction((selector, expected) => document.querySelector(selector)?.textContent.includes(expected), {}, selector, expected)

const ways = {
  async 'land and sign in'() {
    await go('/')
    await clickTo('header a[href^="/session/login"]')
    await fill('[name=username]', EMAIL)
    await fill('[name=password]', PASSWORD)
    await clickTo('main form button')
    await shows('header .account', EMAIL)
  },

  async 'search the guide, and choose a language'() {
    await go('/docs/first-request')
    await fill('#search', 'idempotency key')
    await shows('.search ol', 'dempotency')
    await clickTo('.search ol a')
    assert.match(page.url(), /\/docs\/[a-z-]+/)
    await go('/docs/first-request')
    await click('.languages label:has([value=python])')
    await element('.in-python')
    assert.equal(await page.$('.in-curl').then((one) => one.isVisible()), false)
  },

  async 'open an endpoint of the reference, and call it with a key'() {
    await go('/docs')
    await fill('#filter', 'list orders of one')
    await click('.index li:not([hidden]) a')
    await element('.opblock-body .responses-table')
    await click('button.authorize')
    const field = '.auth-container input[aria-label="Value: apiKey"]'
    await fill(field, KEY)
    await click('.auth-container button[aria-label="Authorize: apiKey"]')
    await page.keyboard.press('Escape')
    await shows('.used', 'apiKey')
    await page.waitForSelector('.modal-ux', { hidden: true })
    await click('.try-out__btn')
    await fill('input[aria-label=user_id]', '1')
    await click('.execute')
    await shows('.live-responses-table .response .response-col_status', '200')
    // The language that was chosen in the guide.
    await shows('.request pre', 'httpx')
    await click('.request label:has([value=javascript])')
    await shows('.request pre', 'await fetch')
  },

  async 'go from a list to a row, and change it'() {
    await go('/api/v2/users?sort=id&limit=5')
    await clickTo('tbody tr:nth-child(3) a')
    await click('#patch > summary')
    await fill('#patch [data-name=name] input', 'Changed in Firefox')
    await click('#patch .send')
    await shows('.answer h2', '200')
    await shows('.answer pre', 'Changed in Firefox')
  },

  async 'read a list of the admin'() {
    await go('/admin/users/user/')
    await element('#result_list tbody tr')
    await clickTo('#result_list tbody th a')
    await element('#id_name')
  },
}

try {
  for (const [name, take] of Object.entries(ways)) {
    await take()
    assert.deepEqual(faults, [], `${name}: ${faults.join()}`)
    console.log(name)
  }
} finally {
  await browser.close()
}

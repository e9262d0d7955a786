// The OpenAPI documents of a running service (`make test-clients`): what linters say of them, and a program whose types
// are made from one of them.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { before, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'

import { dereference, validate } from '@scalar/openapi-parser'
import postman from 'postman-collection'

const { Collection, Property } = postman
const HERE = fileURLToPath(new URL('.', import.meta.url))
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const ORIGIN = process.env.ORIGIN ?? 'http://127.0.0.1:8000'
const VERSIONS = [1, 2]

function manage(args, input = '') {
  return execFileSync(process.env.PYTHON ?? '.venv/bin/python', ['manage.py', ...args], { cwd: ROOT, input }).toString()
}

/** Runs a tool of node_modules; what it says is the reason when it fails. */
function tool(entry, ...args) {
  try {
    execFileSync(process.execPath, [`node_modules/${entry}`, ...args], { cwd: HERE, stdio: 'pipe' })
  } catch (failure) {
    assert.fail(`${failure.stdout}\n${failure.stderr}`)
  }
}

function createKey() {
  const email = `typed-${randomBytes(6).toString('hex')}@example.com`
  manage(['create_user', email, '--name', 'Typed', '--role', 'admin'], `${randomBytes(12).toString('base64url')}\n`)
  return manage(['create_api_key', email]).trim()
}

before(async () => {
  mkdirSync(`${HERE}generated`, { recursive: true })
  const { data } = await (await fetch(`${ORIGIN}/versions`)).json()
  assert.deepEqual(data.map(({ version }) => version), VERSIONS)
  for (const version of VERSIONS) {
    const answer = await fetch(`${ORIGIN}/openapi.json?version=${version}`)
    // As it stands: the numbers of JavaScript have 53 bits.
    writeFileSync(`${HERE}generated/openapi-v${version}.json`, await answer.text())
  }
})

for (const version of VERSIONS) {
  test(`Spectral has nothing to say of version ${version}`, () => {
    tool('@stoplight/spectral-cli/dist/index.js', 'lint', `generated/openapi-v${version}.json`, '--fail-severity', 'hint')
  })

  test(`redocly lint has nothing to say of version ${version}`, () => {
    tool('@redocly/cli/bin/cli.js', 'lint', `generated/openapi-v${version}.json`, '--config', 'redocly.yaml')
  })

  test(`the parser of Scalar takes version ${version}, and finds what each part refers to`, async () => {
    const document = JSON.parse(readFileSync(`${HERE}generated/openapi-v${version}.json`, 'utf8'))
    const { valid, errors } = await validate(document)
    assert.deepEqual({ valid, errors: errors ?? [] }, { valid: true, errors: [] })
    assert.deepEqual(dereference(document).errors ?? [], [])
    const broken = structuredClone(document)
    delete broken.paths['/health/live'].get.responses
    broken.info = {}
    assert.equal((await validate(broken)).valid, false)
  })

  test(`the types of version ${version} are generated`, () => {
    const document = `generated/openapi-v${version}.json`
    tool('openapi-typescript/bin/cli.js', document, '--output', `generated/v${version}.d.ts`)
  })
}

test('a program with generated types compiles and runs', async () => {
  tool('typescript/lib/tsc.js', '--project', '.')
  const key = createKey()
  const { run } = await import(pathToFileURL(`${HERE}generated/typed-client.js`).href)
  await run(ORIGIN, key)
})

test("Postman's own library imports the collection, whose requests are answered", async () => {
  const collection = new Collection(await (await fetch(`${ORIGIN}/docs/postman.json`)).json())
  const requests = []
  collection.forEachItem(({ name, request }) => requests.push([name, request]))
  const { paths } = JSON.parse(readFileSync(`${HERE}generated/openapi-v2.json`, 'utf8'))
  assert.equal(requests.length, Object.values(paths).flatMap(Object.keys).length)
  const [, list] = requests.find(([name]) => name === 'List users')
  const variables = { ...collection.variables.toObject(), key: createKey() }
  const url = Property.replaceSubstitutions(list.url.toString(), variables)
  const { key: header, value } = list.auth.parameters().toObject()
  const headers = { [header]: Property.replaceSubstitutions(value, variables) }
  assert.equal((await fetch(url, { headers })).status, 200)
})

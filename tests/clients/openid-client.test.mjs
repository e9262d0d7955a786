// OAuth as the npm package openid-client speaks it, unmodified, against a running service (`make test-clients`).

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { before, test } from 'node:test'
import { fileURLToPath } from 'node:url'

import * as oauth from 'openid-client'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const ORIGIN = process.env.ORIGIN ?? 'http://127.0.0.1:8000'
const CALLBACK = 'https://client.example/callback'
const SCOPE = 'users:read orders:read'
const email = `client-${randomBytes(6).toString('hex')}@example.com`
const password = randomBytes(12).toString('base64url')

function manage(args, input = '') {
  return execFileSync(process.env.PYTHON ?? '.venv/bin/python', ['manage.py', ...args], { cwd: ROOT, input }).toString()
}

function register(...more) {
  return JSON.parse(manage(['create_oauth_application', 'Client', '--owner', email, '--scopes', SCOPE, ...more]))
}

/** What the client learns of the service by itself, from the metadata document. */
function discover({ client_id, client_secret }, authentication) {
  return oauth.discovery(new URL(ORIGIN), client_id, client_secret, authentication, {
    algorithm: 'oauth2',
    // The service on one's own machine has no TLS.
    execute: ORIGIN.startsWith('http:') ? [oauth.allowInsecureRequests] : [],
  })
}

async function protectedStatus(accessToken) {
  const answer = await fetch(`${ORIGIN}/api/v1/protected`, { headers: { Authorization: `Bearer ${accessToken}` } })
  return answer.status
}

/** A browser, as far as forms need one. */
class Browser {
  cookies = new Map()

  async request(url, form) {
    const answer = await fetch(new URL(url, ORIGIN), {
      method: form ? 'POST' : 'GET',
      body: form && new URLSearchParams(form),
      headers: { Cookie: [...this.cookies].map((pair) => pair.join('=')).join('; ') },
      redirect: 'manual',
    })
    for (const cookie of answer.headers.getSetCookie()) {
      const [name, value] = cookie.split(';')[0].split('=')
      this.cookies.set(name, value)
    }
    return { status: answer.status, location: answer.headers.get('Location'), text: await answer.text() }
  }

  async submit(url, form) {
    const page = await this.request(url)
    assert.equal(page.status, 200, page.text)
    const [, token] = page.text.match(/name="csrfmiddlewaretoken" value="(\w+)"/)
    return this.request(url, { csrfmiddlewaretoken: token, ...form })
  }

  /** Signs in, agrees, and returns where the browser is sent. */
  async consent(url) {
    const { location } = await this.request(url)
    const signedIn = await this.submit(location, { username: email, password, next: url.pathname + url.search })
    const answer = await this.submit(signedIn.location, { decision: 'approve' })
    assert.equal(answer.status, 302)
    return new URL(answer.location)
  }
}

before(() => {
  manage(['create_user', email, '--name', 'Client'], `${password}\n`)
})

for (const [kind, options, authentication] of [
  ['confidential, by Basic', [], (secret) => oauth.ClientSecretBasic(secret)],
  ['confidential, in the body', [], (secret) => oauth.ClientSecretPost(secret)],
  ['public', ['--public'], () => oauth.None()],
]) {
  test(`code with PKCE, refresh, introspection and revocation: ${kind}`, async () => {
    const registered = register('--grant', 'authorization-code', '--redirect-uri', CALLBACK, ...options)
    const config = await discover(registered, authentication(registered.client_secret))
    const pkceCodeVerifier = oauth.randomPKCECodeVerifier()
    const state = oauth.randomState()
    const url = oauth.buildAuthorizationUrl(config, {
      redirect_uri: CALLBACK,
      scope: SCOPE,
      state,
      code_challenge: await oauth.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
    })
    const back = await new Browser().consent(url)
    const tokens = await oauth.authorizationCodeGrant(config, back, { pkceCodeVerifier, expectedState: state })
    assert.equal(tokens.scope, SCOPE)
    assert.equal(await protectedStatus(tokens.access_token), 200)

    const refreshed = await oauth.refreshTokenGrant(config, tokens.refresh_token)
    assert.equal(await protectedStatus(tokens.access_token), 401)
    assert.equal(await protectedStatus(refreshed.access_token), 200)

    if (registered.client_secret) {
      const told = await oauth.tokenIntrospection(config, refreshed.access_token)
      assert.deepEqual([told.active, told.client_id], [true, registered.client_id])
    }
    await oauth.tokenRevocation(config, refreshed.refresh_token)
    assert.equal(await protectedStatus(refreshed.access_token), 401)
    await assert.rejects(oauth.refreshTokenGrant(config, refreshed.refresh_token), { error: 'invalid_grant' })
  })
}

test('client credentials', async () => {
  const registered = register('--grant', 'client-credentials')
  const config = await discover(registered, oauth.ClientSecretBasic(registered.client_secret))
  const tokens = await oauth.clientCredentialsGrant(config, { scope: 'users:read' })
  assert.equal(await protectedStatus(tokens.access_token), 200)
  await assert.rejects(oauth.clientCredentialsGrant(config), { error: 'invalid_scope' })
})

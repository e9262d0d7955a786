// What the service sends to webhooks, verified by the npm package standardwebhooks, unmodified (`make test-clients`).

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

import { Webhook, WebhookVerificationError } from 'standardwebhooks'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const ORIGIN = process.env.ORIGIN ?? 'http://127.0.0.1:8000'

function manage(args, input = '') {
  return execFileSync(process.env.PYTHON ?? '.venv/bin/python', ['manage.py', ...args], { cwd: ROOT, input }).toString()
}

/** The next request that a server gets, answered with 204. */
async function receive(server) {
  const [request, response] = await once(server, 'request', { signal: AbortSignal.timeout(30_000) })
  const chunks = await request.toArray()
  response.writeHead(204).end()
  return { headers: request.headers, body: Buffer.concat(chunks).toString() }
}

test('a delivery is verified, and by both secrets while a rotation overlaps', async () => {
  const email = `webhook-${randomBytes(6).toString('hex')}@example.com`
  manage(['create_user', email, '--name', 'Webhook'], `${randomBytes(12).toString('base64url')}\n`)
  const headers = { 'X-API-Key': manage(['create_api_key', email]).trim(), 'Content-Type': 'application/json' }
  const call = async (path, body) => {
    const answer = await fetch(`${ORIGIN}/api/v2${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    assert.ok(answer.ok, await answer.clone().text())
    return (await answer.json()).data
  }
  const server = createServer().listen(0, '127.0.0.1')
  try {
    await once(server, 'listening')
    const url = `http://127.0.0.1:${server.address().port}/hook`
    const { id, secret } = await call('/webhooks', { url, types: ['order.created'] })
    const [ordered, order] = await Promise.all([receive(server), call('/orders', { item: 'Tea', qty: 1 })])
    const event = new Webhook(secret).verify(ordered.body, ordered.headers)
    assert.deepEqual([event.type, event.resource.id], ['order.created', order.id])
    assert.throws(() => new Webhook(secret).verify(`${ordered.body} `, ordered.headers), WebhookVerificationError)

    const rotated = await call(`/webhooks/${id}/rotations`, { overlap_seconds: 60 })
    const [again] = await Promise.all([receive(server), call('/orders', { item: 'Tea', qty: 2 })])
    for (const each of [secret, rotated.secret]) {
      assert.equal(new Webhook(each).verify(again.body, again.headers).type, 'order.created')
    }
    const other = `whsec_${randomBytes(32).toString('base64')}`
    assert.throws(() => new Webhook(other).verify(again.body, again.headers), WebhookVerificationError)
  } finally {
    server.close()
  }
})

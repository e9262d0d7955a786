// A client of version 2 whose types are generated from its document: what does not compile, the document does not allow.

import createClient from 'openapi-fetch'

import type { components, paths } from './generated/v2.js'

type Schemas = components['schemas']

function check(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`not so: ${what}`)
}

/** The user of an answer: its type is the plain one, with nothing to find out about it. */
function userOf(answer: Schemas['UserAnswer'] | undefined): Schemas['SingleUser'] {
  check(answer !== undefined, 'an answer with a user')
  return answer.data
}

export async function run(origin: string, key: string): Promise<void> {
  const client = createClient<paths>({ baseUrl: origin, headers: { 'X-API-Key': key } })
  const suffix = Math.random().toString(36).slice(2)

  const emails = ['first', 'second', 'third'].map((name) => `${name}-${suffix}@example.net`)
  const users: Schemas['SingleUser'][] = []
  for (const email of emails) {
    const { data, response } = await client.POST('/api/v2/users', { body: { name: 'Ada', email, role: 'user' } })
    const user = userOf(data)
    check(response.headers.get('Location') === user._links.self?.href, 'Location is the address of the user')
    users.push(user)
  }
  const [first] = users

  const { data: found } = await client.GET('/api/v2/users', { params: { query: { email: emails[0], page: 1 } } })
  check(found !== undefined && 'total' in found.meta && found.meta.total === 1, 'one is found')

  let cursor: string | null = ''
  const walked: number[] = []
  while (cursor !== null && walked.length < 5) {
    const query: { cursor: string; limit: number; sort: 'id'; order: 'desc' } = { cursor, limit: 2, sort: 'id', order: 'desc' }
    const { data } = await client.GET('/api/v2/users', { params: { query } })
    check(data !== undefined && 'nextCursor' in data.meta, 'a page by cursor')
    walked.push(...data.data.map((user) => user.id))
    cursor = data.meta.nextCursor
  }
  check(users.every(({ id }) => walked.includes(id)), 'the walk meets the new users')

  const path = { id: first.id }
  const { response } = await client.GET('/api/v2/users/{id}', { params: { path } })
  const header = { 'If-Match': response.headers.get('ETag') ?? '' }
  const changed = await client.PATCH('/api/v2/users/{id}', { params: { path, header }, body: { name: 'Grace' } })
  check(userOf(changed.data).name === 'Grace', 'a change by who has the present tag')
  const stale = await client.PATCH('/api/v2/users/{id}', { params: { path, header }, body: { name: 'Lin' } })
  check(stale.response.status === 412 && stale.error !== undefined && 'error' in stale.error, 'a stale tag')
  const code: Schemas['ErrorCode'] = stale.error.error.code
  check(code === 'PRECONDITION_FAILED', code)

  const payment = await client.POST('/api/v2/payments', {
    params: { header: { 'Idempotency-Key': `typed-${suffix}` } },
    body: { amount: '12.30' },
  })
  check(payment.data !== undefined && payment.data.data.amount === '12.30', 'a payment')

  // Each is a mistake that the types find.
  // @ts-expect-error: a role that there is not
  const wrong = await client.POST('/api/v2/users', { body: { name: 'Ada', email: emails[0], role: 'king' } })
  check(wrong.error !== undefined && 'error' in wrong.error && wrong.error.error.details[0].field === 'role', 'a role')
  // @ts-expect-error: no Idempotency-Key
  const refused = await client.POST('/api/v2/payments', { body: { amount: 1 } })
  check(refused.response.status === 400, 'a payment without a key')

  for (const { id } of users) {
    const removed = await client.DELETE('/api/v2/users/{id}', { params: { path: { id } } })
    check(removed.response.status === 204, 'a removal')
  }
}

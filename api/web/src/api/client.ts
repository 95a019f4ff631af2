/** Requests to the API: typed by its schema, with the token of who is signed in, and errors as `problems.ts` has them. */
import createClient, { type Middleware } from "openapi-fetch"

import { apiAddress } from "../place"
import { token } from "../session/token"
import { problemOf, UnreachableError } from "./problems"
import type { paths } from "./schema"

/** `fetch` with the token; an answer that refuses it signs out, and a silent service is an `UnreachableError`. */
export async function ask(request: Request): Promise<Response> {
  const sent = token.value
  if (sent !== null) request.headers.set("Authorization", `Bearer ${sent}`)
  let response: Response
  try {
    response = await fetch(request)
  } catch (error) {
    if (request.signal.aborted) throw error
    throw new UnreachableError(error)
  }
  if (response.status === 401) token.refused(sent)
  return response
}

const problems: Middleware = {
  async onResponse({ response }) {
    if (response.ok || response.status === 304) return
    throw problemOf(response, await response.json().catch(() => undefined))
  },
}

/** `api.GET("/jobs/{job_id}", { params: { path: { job_id: 7 } } })`; it rejects for whatever is not an answer. */
export const api = createClient<paths, "application/json">({
  baseUrl: apiAddress,
  fetch: ask,
  querySerializer: { array: { style: "form", explode: true } },
})
api.use(problems)

/** Return what a request of `api` was answered with. */
export async function data<T>(request: Promise<{ data?: T; response: Response }>): Promise<NonNullable<T>> {
  const answer = await request
  if (answer.data === undefined || answer.data === null)
    throw new Error(`${answer.response.url} was answered with nothing`)
  return answer.data
}

/** Address of a path of the API, to show or to hand to a command. */
export function addressOf(path: string): string {
  return `${apiAddress}${path}`
}

/** Fetch a path of the API that is no JSON, such as a file; errors are as everywhere. */
export async function askFor(path: string, init?: RequestInit): Promise<Response> {
  const response = await ask(new Request(addressOf(path), init))
  if (!response.ok) throw problemOf(response, await response.json().catch(() => undefined))
  return response
}

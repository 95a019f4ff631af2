import { expect, test } from "vitest"

import { isPassing, problemOf, ProblemError, UnreachableError } from "./problems"

function answer(status: number, headers: Record<string, string> = {}) {
  return new Response(null, { status, statusText: "Said so", headers })
}

test("a problem says what was wrong with which field, in the service's words", () => {
  const errors = [{ field: "train.batch", message: "10 is not divisible by 3" }]
  const problem = problemOf(answer(422), { detail: "1 field is wrong", errors, request_id: "r1" })
  expect([problem.message, problem.fields, problem.requestId]).toEqual(["1 field is wrong", errors, "r1"])
})

test("an answer without a problem document, as of a proxy, is told by its status", () => {
  expect(problemOf(answer(502), undefined).message).toBe("Said so")
})

test("what the service says of waiting is kept", () => {
  expect(problemOf(answer(429, { "Retry-After": "7" }), {}).retryAfterS).toBe(7)
})

test("only what may pass by itself is worth another try", () => {
  expect(isPassing(new UnreachableError())).toBe(true)
  expect(isPassing(new ProblemError(503, "away"))).toBe(true)
  expect(isPassing(new ProblemError(404, "no such job"))).toBe(false)
})

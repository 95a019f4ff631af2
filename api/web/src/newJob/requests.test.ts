import { expect, test } from "vitest"

import type { Job } from "../api/types"
import { startingFrom } from "./clones"
import { keyFor, forgetKey } from "./idempotency"
import { requestOf, type Parent } from "./requests"

const parent: Parent = {
  job: { id: 7 } as Job,
  spec: { train: { model: "resnet18", lr: 0.2 }, labels: { team: "a" }, start_from: { job: 3 }, user: "bob" },
}
const me = { user: "ann", role: "submitter", token_id: 1, access: "tokens" } as const

test("a new job is sent as it is", () => {
  expect(requestOf({ train: {} }, null)).toEqual({ kind: "submit", path: "/jobs", body: { train: {} } })
})

test("a clone is sent as what differs, and begins where the other did unless that is changed", () => {
  const spec = { ...parent.spec, train: { model: "resnet18" } }
  expect(requestOf(spec, parent)).toEqual({
    ...{ kind: "clone", parent: 7, path: "/jobs/7/clone" },
    body: { changes: { train: { lr: null } } },
  })
})

test("a clone from a checkpoint names it, and one from none takes it out", () => {
  const first = startingFrom({ parent, checkpoint: "9", mode: null, me, isAdmin: true })
  expect(requestOf(first, parent).body).toEqual({ changes: {}, start_from: { job: 7, checkpoint: 9 } })
  expect(requestOf({ ...parent.spec, start_from: null }, parent).body).toEqual({ changes: { start_from: null } })
})

test("a clone of somebody else's job is one's own, unless an admin clones it", () => {
  const beginning = { parent, checkpoint: null, mode: null, me }
  expect(requestOf(startingFrom({ ...beginning, isAdmin: false }), parent).body).toEqual({ changes: { user: null } })
  expect(requestOf(startingFrom({ ...beginning, isAdmin: true }), parent).body).toEqual({ changes: {} })
})

test("one request has one key until it is answered, and another request another", () => {
  const key = keyFor("a")
  expect(key).toMatch(/^[0-9a-f]{32}$/)
  expect(keyFor("a")).toBe(key)
  const other = keyFor("b")
  expect(other).not.toBe(key)
  forgetKey("a")
  expect(keyFor("b")).toBe(other)
  forgetKey("b")
  expect(keyFor("b")).not.toBe(other)
})

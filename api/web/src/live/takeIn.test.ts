import { QueryClient } from "@tanstack/react-query"
import { expect, test } from "vitest"

import { keys } from "../api/queries"
import type { JobEvent } from "../api/types"
import { takeIn } from "./takeIn"

const EVENT = { id: 1, attempt: 1, at: "2026-01-01T00:00:00Z", kind: "state", detail: {} } as const
const RUNNING: JobEvent = { ...EVENT, from_state: "starting", to_state: "running" }
const CHANGED: JobEvent = { ...EVENT, kind: "change", from_state: null, to_state: null }

function kept() {
  const client = new QueryClient()
  for (const key of [keys.job(7), keys.attempts(7), keys.job(8), keys.hosts, keys.checkpoints(7)]) {
    client.setQueryData(key, { id: 7, progress: null })
  }
  const isStale = (key: readonly unknown[]) => client.getQueryState(key)?.isInvalidated
  return { client, isStale }
}

test("progress is put into the job that is kept, and nothing is asked for", () => {
  const { client, isStale } = kept()
  takeIn(client, { topic: "jobs", data: { job_id: 7, event: null, progress: { step: 3, values: {} } } })
  expect(client.getQueryData(keys.job(7))).toMatchObject({ progress: { step: 3 } })
  expect(isStale(keys.job(7))).toBe(false)
})

test("a change of state has the job, its attempts and the hosts read anew, and no other job", () => {
  const { client, isStale } = kept()
  takeIn(client, { topic: "jobs", data: { job_id: 7, event: RUNNING, progress: null } })
  expect([keys.job(7), keys.attempts(7), keys.hosts, keys.job(8)].map(isStale)).toEqual([true, true, true, false])
})

test("what is no change of state leaves the hosts alone", () => {
  const { client, isStale } = kept()
  takeIn(client, { topic: "jobs", data: { job_id: 7, event: CHANGED, progress: null } })
  expect([isStale(keys.job(7)), isStale(keys.hosts)]).toEqual([true, false])
})

test("a new checkpoint has the job's checkpoints read anew", () => {
  const { client, isStale } = kept()
  takeIn(client, { topic: "checkpoints", data: { job_id: 7, items: [] } })
  expect(isStale(keys.checkpoints(7))).toBe(true)
})

test("progress of a job that is not kept makes no job", () => {
  const { client } = kept()
  takeIn(client, { topic: "jobs", data: { job_id: 9, event: null, progress: { step: 3, values: {} } } })
  expect(client.getQueryData(keys.job(9))).toBeUndefined()
})

import { QueryClient, QueryObserver } from "@tanstack/react-query"
import { expect, test, vi } from "vitest"

import { keys } from "../api/queries"
import type { JobEvent } from "../api/types"
import type { News } from "./events"
import { TakingIn } from "./takeIn"

const EVENT = { id: 1, attempt: 1, at: "2026-01-01T00:00:00Z", kind: "state", detail: {} } as const
const RUNNING: JobEvent = { ...EVENT, from_state: "starting", to_state: "running" }
const CHANGED: JobEvent = { ...EVENT, kind: "change", from_state: null, to_state: null }

function kept() {
  const client = new QueryClient()
  for (const key of [keys.job(7), keys.attempts(7), keys.job(8), keys.hosts, keys.checkpoints(7)]) {
    client.setQueryData(key, { id: 7, progress: null })
  }
  const isStale = (key: readonly unknown[]) => client.getQueryState(key)?.isInvalidated
  const takingIn = new TakingIn(client)
  return { client, isStale, takeIn: (news: News) => takingIn.take(news) }
}

test("progress is put into the job that is kept, and nothing is asked for", () => {
  const { client, isStale, takeIn } = kept()
  takeIn({ topic: "jobs", data: { job_id: 7, event: null, progress: { step: 3, values: {} } } })
  expect(client.getQueryData(keys.job(7))).toMatchObject({ progress: { step: 3 } })
  expect(isStale(keys.job(7))).toBe(false)
})

test("a change of state has the job, its attempts and the hosts read anew, and no other job", async () => {
  const { isStale, takeIn } = kept()
  takeIn({ topic: "jobs", data: { job_id: 7, event: RUNNING, progress: null } })
  const all = [keys.job(7), keys.attempts(7), keys.hosts, keys.job(8)]
  await vi.waitFor(() => expect(all.map(isStale)).toEqual([true, true, true, false]))
})

test("what is no change of state leaves the hosts alone", async () => {
  const { isStale, takeIn } = kept()
  takeIn({ topic: "jobs", data: { job_id: 7, event: CHANGED, progress: null } })
  await vi.waitFor(() => expect([isStale(keys.job(7)), isStale(keys.hosts)]).toEqual([true, false]))
})

test("a new checkpoint has the job's checkpoints read anew", () => {
  const { isStale, takeIn } = kept()
  takeIn({ topic: "checkpoints", data: { job_id: 7, items: [] } })
  expect(isStale(keys.checkpoints(7))).toBe(true)
})

test("progress of a job that is not kept makes no job", () => {
  const { client, takeIn } = kept()
  takeIn({ topic: "jobs", data: { job_id: 9, event: null, progress: { step: 3, values: {} } } })
  expect(client.getQueryData(keys.job(9))).toBeUndefined()
})

test("news that come faster than answers have them read one after the other, and the last of them is in what is read last", async () => {
  const client = new QueryClient()
  const answers: (() => void)[] = []
  const queryFn = vi.fn(() => new Promise<number>((resolve) => answers.push(() => resolve(answers.length))))
  const forget = new QueryObserver(client, { queryKey: keys.hosts, queryFn }).subscribe(() => undefined)
  answers[0]?.()
  await vi.waitFor(() => expect(client.getQueryData(keys.hosts)).toBe(1))
  const takingIn = new TakingIn(client)
  const drained: News = { topic: "hosts", data: { host: "alpha", change: "drained" } }
  takingIn.take(drained)
  takingIn.take(drained)
  takingIn.take(drained)
  expect(queryFn).toHaveBeenCalledTimes(2)
  await vi.waitFor(() => expect(answers.length).toBe(2))
  answers[1]?.()
  await vi.waitFor(() => expect(queryFn).toHaveBeenCalledTimes(3))
  answers[2]?.()
  await vi.waitFor(() => expect(client.getQueryData(keys.hosts)).toBe(3))
  expect(queryFn).toHaveBeenCalledTimes(3)
  forget()
})

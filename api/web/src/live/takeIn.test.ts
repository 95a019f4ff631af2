import { QueryClient } from "@tanstack/react-query"
import { expect, test } from "vitest"

import { keys } from "../api/queries"
import type { JobEvent } from "../api/types"
import type { News } from "./events"
import { StaleAnswers } from "./staleAnswers"
import { takeIn } from "./takeIn"

const EVENT = { id: 1, attempt: 1, at: "2026-01-01T00:00:00Z", kind: "state", detail: {} } as const
const RUNNING: JobEvent = { ...EVENT, from_state: "starting", to_state: "running" }
const CHANGED: JobEvent = { ...EVENT, kind: "change", from_state: null, to_state: null }

/** What one piece of news makes of an answer that is kept, and which answers it has read anew. */
function taken(news: News) {
  const client = new QueryClient()
  client.setQueryData(keys.job(7), { id: 7, progress: null })
  const stale: unknown[] = []
  const answers = new StaleAnswers(client)
  answers.add = (key) => stale.push(key)
  takeIn(client, answers, news)
  return { client, stale }
}

test("progress is put into the job that is kept, and nothing is asked for", () => {
  const { client, stale } = taken({
    topic: "jobs",
    data: { job_id: 7, event: null, progress: { step: 3, values: {} } },
  })
  expect(client.getQueryData(keys.job(7))).toMatchObject({ progress: { step: 3 } })
  expect(stale).toEqual([])
})

test("a change of state has the job and the hosts read anew", () => {
  const { stale } = taken({ topic: "jobs", data: { job_id: 7, event: RUNNING, progress: null } })
  expect(stale).toEqual([keys.ofJob(7), keys.hosts])
})

test("what is no change of state leaves the hosts alone", () => {
  const { stale } = taken({ topic: "jobs", data: { job_id: 7, event: CHANGED, progress: null } })
  expect(stale).toEqual([keys.ofJob(7)])
})

test("a new checkpoint has the job's checkpoints read anew", () => {
  expect(taken({ topic: "checkpoints", data: { job_id: 7, items: [] } }).stale).toEqual([keys.checkpoints(7)])
})

test("progress of a job that is not kept makes no job", () => {
  const { client } = taken({ topic: "jobs", data: { job_id: 9, event: null, progress: { step: 3, values: {} } } })
  expect(client.getQueryData(keys.job(9))).toBeUndefined()
})

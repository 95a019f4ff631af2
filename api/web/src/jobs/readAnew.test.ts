import { QueryClient } from "@tanstack/react-query"
import { afterEach, expect, test, vi } from "vitest"

import { jobPagesKey, type JobPages } from "../api/jobPages"
import type { Job } from "../api/types"
import { readFirst, readJobs } from "./readAnew"

const SORTED = { sort: "-id" } as const

function kept(...jobs: Partial<Job>[]): [QueryClient, () => unknown] {
  const client = new QueryClient()
  const pages = { pages: [{ items: jobs as Job[], next_page: null }], pageParams: [undefined] }
  client.setQueryData<JobPages>(jobPagesKey(SORTED), pages)
  return [client, () => client.getQueryData<JobPages>(jobPagesKey(SORTED))?.pages[0]?.items]
}

/** The service answers for each path with a status, 200 with the body that is given. */
function answering(answers: Record<string, number | object>) {
  vi.stubGlobal("fetch", ({ url }: Request) => {
    const answer = answers[new URL(url).pathname] ?? 404
    return Promise.resolve(
      typeof answer === "number" ? Response.json({ detail: "no" }, { status: answer }) : Response.json(answer),
    )
  })
}

afterEach(() => vi.unstubAllGlobals())

test("jobs that were read are kept, and those that a busy service refuses are answered with", async () => {
  const [client, listed] = kept({ id: 7, state: "running" }, { id: 8, state: "running" }, { id: 9, state: "running" })
  answering({ "/jobs/7": { id: 7, state: "failed" }, "/jobs/8": 503, "/jobs/9": 404 })
  expect(await readJobs(client, SORTED, [7, 8, 9, 10])).toEqual([8])
  expect(listed()).toEqual([
    { id: 7, state: "failed" },
    { id: 8, state: "running" },
    { id: 9, state: "running" },
  ])
})

test("what stands at the top is read anew, or it is said that it was not", async () => {
  const [client, listed] = kept({ id: 7 })
  answering({ "/jobs": 429 })
  expect(await readFirst(client, SORTED)).toBe(false)
  answering({ "/jobs": { items: [{ id: 8 }, { id: 7 }], next_page: null } })
  expect(await readFirst(client, SORTED)).toBe(true)
  expect(listed()).toEqual([{ id: 8 }, { id: 7 }])
})

/** What several pages ask of the API, and under which keys TanStack Query keeps the answers. */
import { queryOptions } from "@tanstack/react-query"

import { api, data } from "./client"
import { jobIdIn } from "./jobId"
import { ProblemError } from "./problems"
import type { Job } from "./types"

/**
 * Everything under `live` is told of by the event stream and read anew after a break of it. `ofJob` has all of one job
 * that changes with its events; `checkpoints` is beside it, as they have a topic of their own.
 */
export const keys = {
  live: ["live"],
  /** Lists of jobs, each with its filters behind. */
  jobs: ["live", "jobs"],
  ofJob: (id: number) => ["live", "job", id],
  job: (id: number) => ["live", "job", id, "itself"],
  attempts: (id: number) => ["live", "job", id, "attempts"],
  events: (id: number) => ["live", "job", id, "events"],
  checkpoints: (id: number) => ["live", "checkpoints", id],
  hosts: ["live", "hosts"],
  me: ["me"],
  recipes: ["recipes"],
  dataSets: ["data-sets"],
} as const

export function jobQuery(id: number) {
  return queryOptions({
    queryKey: keys.job(id),
    queryFn: ({ signal }) => data(api.GET("/jobs/{job_id}", { params: { path: { job_id: id } }, signal })),
  })
}

/** Jobs by number (`7`, `#7`) or by a part of their name. */
export function foundJobsQuery(words: string) {
  const number = jobIdIn(words.replace(/^#/, ""))
  return queryOptions({
    queryKey: ["found-jobs", words],
    enabled: words.length > 1 || number !== null,
    staleTime: 5_000,
    retry: false,
    queryFn: async ({ signal }) => {
      const query = { name: words.replace(/^#/, ""), size: FOUND }
      const named = (await data(api.GET("/jobs", { params: { query }, signal }))).items
      return number === null ? named : withNumber(number, named, signal)
    },
  })
}

/** How many jobs of a name are shown to choose from. */
const FOUND = 8

/** Put the job with a number before those that have it in their name. Numbers are typed digit by digit, and most are no job's. */
async function withNumber(id: number, named: Job[], signal: AbortSignal): Promise<Job[]> {
  try {
    const job = await data(api.GET("/jobs/{job_id}", { params: { path: { job_id: id } }, signal }))
    return [job, ...named.filter((other) => other.id !== id)]
  } catch (error) {
    if (error instanceof ProblemError && error.status === 404) return named
    throw error
  }
}

export function attemptsQuery(id: number) {
  return queryOptions({
    queryKey: keys.attempts(id),
    queryFn: async ({ signal }) =>
      (await data(api.GET("/jobs/{job_id}/attempts", { params: { path: { job_id: id } }, signal }))).items,
  })
}

export function hostsQuery() {
  return queryOptions({
    queryKey: keys.hosts,
    queryFn: async ({ signal }) => (await data(api.GET("/hosts", { signal }))).items,
    // A host that falls silent writes no event.
    refetchInterval: 15_000,
  })
}

export function recipesQuery() {
  return queryOptions({
    queryKey: keys.recipes,
    queryFn: async ({ signal }) => (await data(api.GET("/recipes", { signal }))).items,
    staleTime: 60_000,
  })
}

export function dataSetsQuery() {
  return queryOptions({
    queryKey: keys.dataSets,
    queryFn: async ({ signal }) => (await data(api.GET("/data-sets", { signal }))).items,
    staleTime: 60_000,
  })
}

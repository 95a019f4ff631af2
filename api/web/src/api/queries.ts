/** What several pages ask of the API, and under which keys TanStack Query keeps the answers. */
import { queryOptions } from "@tanstack/react-query"

import { api, data } from "./client"

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
  metricNames: (id: number) => ["live", "metric-names", id],
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
  const number = /^#?(\d{1,15})$/.exec(words)?.[1]
  return queryOptions({
    queryKey: ["found-jobs", words],
    enabled: words.length > 1 || number !== undefined,
    staleTime: 5_000,
    retry: false,
    queryFn: async ({ signal }) => {
      if (number !== undefined) {
        const path = { job_id: Number(number) }
        return [await data(api.GET("/jobs/{job_id}", { params: { path, query: { fields: undefined } }, signal }))]
      }
      return (await data(api.GET("/jobs", { params: { query: { name: words, size: 8 } }, signal }))).items
    },
  })
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

export function metricNamesQuery(id: number) {
  return queryOptions({
    queryKey: keys.metricNames(id),
    queryFn: async ({ signal }) =>
      (await data(api.GET("/jobs/{job_id}/metrics/names", { params: { path: { job_id: id } }, signal }))).items,
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

/** The jobs that have devices: as their tiles name them, and as the plan draws them. */
import { queryOptions } from "@tanstack/react-query"

import { api, data } from "../api/client"
import { keys } from "../api/queries"
import type { Job } from "../api/types"

/** Everything of the plan that is kept: who runs, and who waits. */
export const planKey = [...keys.jobs, "plan"] as const

/** Foretold starts and ends and places in the line change with every plan, and no event tells of that. */
export const POLL_MS = 12_000

const FIELDS = [
  "id",
  "name",
  "user",
  "state",
  "intent",
  "attempt",
  "progress",
  "started_at",
  "spec",
] as const satisfies readonly (keyof Job)[]

export type RunningJob = Pick<Job, (typeof FIELDS)[number]>

/** By id; the newest thousand. */
export function runningJobsQuery() {
  return queryOptions({
    queryKey: [...planKey, "running"],
    queryFn: async ({ signal }): Promise<Record<number, RunningJob>> => {
      const query = { state: ["starting" as const, "running" as const], size: 1000, fields: FIELDS.join(",") }
      const { items } = await data(api.GET("/jobs", { params: { query }, signal }))
      return Object.fromEntries(items.map((job) => [job.id, job]))
    },
    refetchInterval: POLL_MS,
  })
}

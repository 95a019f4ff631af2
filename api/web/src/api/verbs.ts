/** What a person can tell a job to do, and what of it is kept when the service has answered. */
import type { QueryClient } from "@tanstack/react-query"

import { api, data } from "./client"
import { keepInPages } from "./jobPages"
import { keys } from "./queries"
import type { components } from "./schema"
import { isOver } from "./states"
import type { Job } from "./types"

export type Verb = "cancel" | "pause" | "resume" | "retry"

/** Other devices for a paused job to go on with. */
export type Place = components["schemas"]["Place"]

/** Another priority, or labels that are set or (null) taken away. */
type JobChanges = components["schemas"]["JobChanges"]

/** The verbs that the service takes for a job as it is now. */
export function verbsFor(job: Pick<Job, "state" | "intent" | "failure">): Verb[] {
  if (job.intent === "cancel") return []
  // All attempts of a job share its time limit: once that is spent there is none to try again in.
  if (job.state === "failed") return job.failure?.cause === "time_limit" ? [] : ["retry"]
  if (isOver(job)) return []
  return job.state === "paused" || job.intent === "pause" ? ["resume", "cancel"] : ["pause", "cancel"]
}

/** Tell a job to do something; answers with the job as it then is. */
export function tell(verb: Verb, id: number, place?: Place): Promise<Job> {
  const params = { path: { job_id: id } }
  switch (verb) {
    case "cancel":
      return data(api.POST("/jobs/{job_id}/cancel", { params }))
    case "pause":
      return data(api.POST("/jobs/{job_id}/pause", { params }))
    case "resume":
      return data(api.POST("/jobs/{job_id}/resume", { params, body: place }))
    case "retry":
      return data(api.POST("/jobs/{job_id}/retry", { params }))
  }
}

/** Give a job another priority or other labels; with `etag`, a 412 where somebody else has edited it since. */
export function change(id: number, changes: JobChanges, etag?: string): Promise<Job> {
  const header = etag === undefined ? {} : { "if-match": etag }
  return data(api.PATCH("/jobs/{job_id}", { params: { path: { job_id: id }, header }, body: changes }))
}

/** Keep jobs as the service has just answered them, wherever they are shown. */
export function keepJobs(client: QueryClient, jobs: readonly Job[]): void {
  for (const job of jobs) client.setQueryData<Job>(keys.job(job.id), job)
  keepInPages(client, new Map(jobs.map((job) => [job.id, () => job])))
}

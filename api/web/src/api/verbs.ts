/** What a person can tell a job to do, and what of it is kept when the service has answered. */
import { useMutation, useQueryClient, type QueryClient } from "@tanstack/react-query"

import { notices } from "../parts/notices"
import { api, data } from "./client"
import { keepInPages } from "./jobPages"
import { keys } from "./queries"
import type { components } from "./schema"
import type { Job, State } from "./types"

export type Verb = "cancel" | "pause" | "resume" | "retry"

/** Other devices for a paused job to go on with. */
export type Place = components["schemas"]["Place"]

/** Another priority, or labels that are set or (null) taken away. */
export type JobChanges = components["schemas"]["JobChanges"]

const OVER: readonly State[] = ["succeeded", "failed", "cancelled"]

export function isOver(job: Pick<Job, "state">): boolean {
  return OVER.includes(job.state)
}

/** The verbs that mean something for a job as it is now. */
export function verbsFor(job: Pick<Job, "state" | "intent">): Verb[] {
  if (job.state === "failed") return ["retry"]
  if (isOver(job) || job.intent === "cancel") return []
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

/** Keep a job as the service has just answered it, wherever it is shown. */
export function keepJob(client: QueryClient, job: Job): void {
  client.setQueryData<Job>(keys.job(job.id), job)
  keepInPages(client, new Map([[job.id, () => job]]))
}

/** What a verb has come to, in words. */
export function cameTo(verb: Verb, job: Pick<Job, "id" | "state">): string {
  switch (verb) {
    case "cancel":
      return isOver(job) ? `Job ${job.id} is ${job.state}` : `Job ${job.id} ends within seconds`
    case "pause":
      return job.state === "paused" ? `Job ${job.id} is paused` : `Job ${job.id} saves a checkpoint, then pauses`
    case "resume":
      return job.state === "queued" ? `Job ${job.id} is in the line again` : `Job ${job.id} goes on`
    case "retry":
      return `Job ${job.id} is in the line again, with all of its retries`
  }
}

/** Tell one job to do something; a notice says what it came to. */
export function useVerb() {
  const client = useQueryClient()
  return useMutation({
    mutationFn: ({ verb, id, place }: { verb: Verb; id: number; place?: Place }) => tell(verb, id, place),
    onSuccess: (job, { verb }) => {
      keepJob(client, job)
      notices.done(cameTo(verb, job))
    },
    onError: (error, { id }) => notices.failed(`Job ${id}: ${error.message}`),
  })
}

/** Change one job's priority or labels; a notice says if that failed. */
export function useChange() {
  const client = useQueryClient()
  return useMutation({
    mutationFn: ({ id, changes }: { id: number; changes: JobChanges }) => change(id, changes),
    onSuccess: (job) => keepJob(client, job),
    onError: (error, { id }) => notices.failed(`Job ${id}: ${error.message}`),
  })
}

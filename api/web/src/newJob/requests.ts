/** The request that submits a job: a spec of its own, or what differs from the job that it is cloned from. */
import { api, data } from "../api/client"
import type { Clone, Job, JobSpec, Plan, SubmittedJob } from "../api/types"
import { areEqual, isObject, patchBetween, type JsonObject } from "../format/json"

/** The job that is cloned, and its spec as `JobForm` begins with it: only what differs from the defaults. */
export interface Parent {
  job: Job
  spec: JsonObject
}

/** A spec of its own, or changes to the spec of the job `parent`. */
export type JobRequest =
  { kind: "submit"; path: string; body: JsonObject } | { kind: "clone"; parent: number; path: string; body: JsonObject }

/** `parent` is null for what is cloned from no job, and for what is like one that only its owner can have cloned. */
export function requestOf(spec: JsonObject, parent: Parent | null): JobRequest {
  if (!parent) return { kind: "submit", path: "/jobs", body: spec }
  const { start_from: start, ...rest } = spec
  const { start_from: startBefore, ...restBefore } = parent.spec
  const changes = patchBetween(restBefore, rest)
  const clone = { kind: "clone", parent: parent.job.id, path: `/jobs/${parent.job.id}/clone` } as const
  if (areEqual(start, startBefore)) return { ...clone, body: { changes } }
  if (isObject(start)) return { ...clone, body: { changes, start_from: start } }
  return { ...clone, body: { changes: { ...changes, start_from: start ?? null } } }
}

/** The service says what is wrong with a spec; here it may be anything that somebody has typed. */
export function plan(spec: JsonObject, signal: AbortSignal): Promise<Plan> {
  return data(api.POST("/jobs/plan", { body: spec as unknown as JobSpec, signal }))
}

export function send(request: JobRequest, key: string): Promise<SubmittedJob> {
  const header = { "Idempotency-Key": key }
  if (request.kind === "submit") {
    return data(api.POST("/jobs", { body: request.body as unknown as JobSpec, params: { header } }))
  }
  const params = { header, path: { job_id: request.parent } }
  return data(api.POST("/jobs/{job_id}/clone", { body: request.body as unknown as Clone, params }))
}

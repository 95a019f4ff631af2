/** The request that submits a job: a spec of its own, or what differs from the job that it is cloned from. */
import { addressOf, api, data } from "../api/client"
import type { Clone, Job, JobSpec, Plan, SubmittedJob } from "../api/types"
import { areEqual, isObject, patchBetween, type JsonObject } from "./json"

/** The job that is cloned, and its spec as `JobForm` begins with it: only what differs from the defaults. */
export interface Parent {
  job: Job
  spec: JsonObject
}

export interface JobRequest {
  path: string
  body: JsonObject
}

export function requestOf(spec: JsonObject, parent: Parent | null): JobRequest {
  if (!parent) return { path: "/jobs", body: spec }
  const { start_from: start, ...rest } = spec
  const { start_from: startBefore, ...restBefore } = parent.spec
  const changes = patchBetween(restBefore, rest)
  const path = `/jobs/${parent.job.id}/clone`
  if (areEqual(start, startBefore)) return { path, body: { changes } }
  if (isObject(start)) return { path, body: { changes, start_from: start } }
  return { path, body: { changes: { ...changes, start_from: start ?? null } } }
}

/** The service says what is wrong with a spec; here it may be anything that somebody has typed. */
export function plan(spec: JsonObject, signal: AbortSignal): Promise<Plan> {
  return data(api.POST("/jobs/plan", { body: spec as unknown as JobSpec, signal }))
}

export function send({ body }: JobRequest, parent: Parent | null, key: string): Promise<SubmittedJob> {
  const header = { "Idempotency-Key": key }
  if (!parent) return data(api.POST("/jobs", { body: body as unknown as JobSpec, params: { header } }))
  const path = { job_id: parent.job.id }
  return data(api.POST("/jobs/{job_id}/clone", { body: body as unknown as Clone, params: { header, path } }))
}

/** The same request for a terminal. */
export function curlOf({ path, body }: JobRequest, withToken: boolean): string {
  return [
    `curl ${addressOf(path)}`,
    ...(withToken ? [`-H "Authorization: Bearer $RANKZERO_TOKEN"`] : []),
    `-H 'Content-Type: application/json'`,
    `-d '${JSON.stringify(body).replaceAll("'", `'\\''`)}'`,
  ].join(" \\\n  ")
}

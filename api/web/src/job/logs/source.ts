/** Where a job's output is read, searched and downloaded. */
import { api, data } from "../../api/client"
import type { Source } from "./output"
import type { Search } from "./matches"

/** Which part of the output: of one rank, of one attempt, or all. */
export interface Part {
  rank?: number
  attempt?: number
}

export function sourceOf(job: number, part: Part): Source {
  const read = async (after: number, limit: number) =>
    (
      await data(
        api.GET("/jobs/{job_id}/logs", { params: { path: { job_id: job }, query: { ...part, after, limit } } }),
      )
    ).items
  const newest = async () =>
    (await data(api.GET("/jobs/{job_id}/logs", { params: { path: { job_id: job }, query: { ...part, tail: 1 } } })))
      .after
  return { read, newest }
}

/** Lines that an answer to a search has at least, where there are more. */
export const FOUND_LINES = 200

/** Search all of the output; `after` of the answer goes on, and it is at its end with fewer than `FOUND_LINES`. */
export function searched(job: number, part: Part, { text, matchCase }: Search, after: number, signal: AbortSignal) {
  const query = { ...part, search: text, after, limit: FOUND_LINES, ...(matchCase ? {} : { ignore_case: true }) }
  return data(api.GET("/jobs/{job_id}/logs", { params: { path: { job_id: job }, query }, signal }))
}

/** Path of the output as a text file. */
export function downloadPath(job: number, part: Part): string {
  const query = new URLSearchParams()
  if (part.rank !== undefined) query.set("rank", String(part.rank))
  if (part.attempt !== undefined) query.set("attempt", String(part.attempt))
  const search = query.toString()
  return `/jobs/${job}/logs/download${search && `?${search}`}`
}

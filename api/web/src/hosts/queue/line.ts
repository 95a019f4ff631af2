/** The jobs that wait, in the order in which they were planned. */
import type { Job } from "../../api/types"

/** What is asked for of each: all that the plan shows. */
export const WAITING_FIELDS = [
  "id",
  "name",
  "user",
  "priority",
  "spec",
  "reason",
  "position",
  "predicted_start",
  "waits_for",
] as const satisfies readonly (keyof Job)[]

export type WaitingJob = Pick<Job, (typeof WAITING_FIELDS)[number]>

/** Most jobs that are shown: who is further behind than this learns his place from the job's own page. */
export const MOST_SHOWN = 200

/** By place in the line; those that no plan has seen yet are the last, in the order in which they came. */
export function inLine(jobs: readonly WaitingJob[]): WaitingJob[] {
  const place = ({ position }: WaitingJob) => position ?? Number.MAX_SAFE_INTEGER
  return [...jobs].sort((one, other) => place(one) - place(other) || one.id - other.id)
}

/** Whether these have the first `most` of the line among them, whatever else waits. */
export function hasFirst(jobs: readonly WaitingJob[], most: number): boolean {
  const places = new Set(jobs.map(({ position }) => position))
  for (let place = 1; place <= most; place += 1) if (!places.has(place)) return false
  return true
}

/** When what runs will end and what waits will start, as far as that is known; in milliseconds of the epoch. */
import type { Job } from "../../api/types"
import { timeLeft_s } from "../../format/progress"

/**
 * When a running job ends: by its pace, or when its time limit is used up, whichever comes first; null where neither is
 * known. What earlier attempts have used of a limit is not with the job, so it counts for the first attempt alone.
 */
export function endOf(
  job: Pick<Job, "state" | "progress" | "attempt" | "started_at" | "spec">,
  now_ms: number,
): number | null {
  const left_s = timeLeft_s(job, now_ms)
  const limit_s = timeLimit_s(job.spec)
  const byPace = left_s === null ? Number.POSITIVE_INFINITY : now_ms + left_s * 1000
  const byLimit =
    limit_s === null || job.attempt !== 1 || job.started_at === null
      ? Number.POSITIVE_INFINITY
      : Math.max(new Date(job.started_at).getTime() + limit_s * 1000, now_ms)
  const end = Math.min(byPace, byLimit)
  return Number.isFinite(end) ? end : null
}

/** When a waiting job starts, and by when it has ended at the latest; null where that is not known. */
export function stretchOf(
  job: Pick<Job, "predicted_start" | "spec">,
  now_ms: number,
): { from_ms: number; to_ms: number | null } | null {
  if (job.predicted_start === null) return null
  // One that was foretold for a moment that has passed is late, and still to come.
  const from_ms = Math.max(new Date(job.predicted_start).getTime(), now_ms)
  const limit_s = timeLimit_s(job.spec)
  return { from_ms, to_ms: limit_s === null ? null : from_ms + limit_s * 1000 }
}

/** A stored spec may be of another release. */
function timeLimit_s(spec: Job["spec"]): number | null {
  return typeof spec.time_limit_s === "number" ? spec.time_limit_s : null
}

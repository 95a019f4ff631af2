/** How far a job is and how long it will still take, from what it says of itself. */
import type { Job } from "../api/types"

/** Before this many seconds of training the pace is that of the start, not of the run. */
const SETTLED_S = 10

/** The share of its steps that a job has taken, from 0 to 1; null where it has no known end. */
export function shareDone({ progress, state }: Pick<Job, "progress" | "state">): number | null {
  if (state === "succeeded") return 1
  if (!progress?.total_steps) return null
  return Math.min(1, (progress.step ?? 0) / progress.total_steps)
}

/** Where the attempt that runs began, for whoever has read the attempts. */
export interface Run {
  started_at: string
  resumed_step: number | null
}

/**
 * Seconds until a running job ends by its pace; null where it does not run, or its pace is not known yet. The first
 * attempt's pace is that since its start, evaluation and saving included. A later one's start is not with the job: without
 * `run` it goes by the samples per second that the training reports.
 */
export function timeLeft_s(
  job: Pick<Job, "state" | "attempt" | "progress" | "started_at">,
  now: number,
  run?: Run,
): number | null {
  const { progress } = job
  if (job.state !== "running" || !progress?.total_steps || !progress.step) return null
  const left = Math.max(0, progress.total_steps - progress.step)
  const began = run ?? (job.attempt === 1 && job.started_at ? { started_at: job.started_at, resumed_step: 0 } : null)
  if (began) {
    const passed_s = (now - new Date(began.started_at).getTime()) / 1000
    const steps = progress.step - (began.resumed_step ?? 0)
    return passed_s < SETTLED_S || steps < 1 ? null : (left * passed_s) / steps
  }
  const samplesPerS = Object.entries(progress.values).find(([name]) => name.endsWith("images_per_s"))?.[1]
  const samples = (progress.batch ?? 0) * (progress.accumulate ?? 1)
  return samplesPerS && samples ? (left * samples) / samplesPerS : null
}

/** Seconds rounded as coarsely as they are uncertain, so that what is shown does not flicker. */
export function settled_s(seconds: number): number {
  const step = seconds < 60 ? 5 : seconds < 7200 ? 60 : 1800
  return Math.max(step, Math.round(seconds / step) * step)
}

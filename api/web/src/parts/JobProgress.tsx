/** How far a job is: a bar, the share in figures, and how long it will still take. */
import type { Job } from "../api/types"
import { count, percent } from "../format/numbers"
import { useNow } from "../format/now"
import { settled_s, shareDone, timeLeft_s, type Run } from "../format/progress"
import { duration } from "../format/times"
import classes from "./JobProgress.module.css"

/** `run`: where the running attempt began, which makes the estimate of a resumed job exact. */
export function JobProgress({ job, run }: { job: Job; run?: Run }) {
  const share = shareDone(job)
  const words = (
    <div className={classes.words}>{share === null ? stepsOf(job) : <Words {...{ job, share, run }} />}</div>
  )
  if (share === null) return words
  return (
    <div>
      <div
        className={classes.track}
        role="progressbar"
        aria-label={`Progress of job ${job.id}`}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.floor(share * 100)}
      >
        <div className={classes.done} data-state={job.state} style={{ width: `${share * 100}%` }} />
      </div>
      {words}
    </div>
  )
}

function Words({ job, share, run }: { job: Job; share: number; run?: Run }) {
  const steps = job.progress?.total_steps
    ? `step ${count(job.progress.step ?? 0)} of ${count(job.progress.total_steps)}`
    : undefined
  return (
    <span title={steps}>
      {percent(share)}
      {job.state === "running" && <Left job={job} run={run} />}
    </span>
  )
}

function Left({ job, run }: { job: Job; run?: Run }) {
  const left_s = timeLeft_s(job, useNow(5_000), run)
  return <> · {left_s === null ? "estimating…" : `${duration(settled_s(left_s))} left`}</>
}

/** A program of the user's own may not know how many steps there will be. */
function stepsOf(job: Job): string {
  if (job.progress?.step) return `step ${count(job.progress.step)}`
  return job.state === "running" ? "no step yet" : ""
}

/** What a job waits for and until when, or why it failed. */
import type { Job } from "../api/types"
import { useNow } from "../format/now"
import { settled_s } from "../format/progress"
import { whyHere } from "../format/reasons"
import { duration, secondsBetween } from "../format/times"
import classes from "./Jobs.module.css"

export function Reason({ job }: { job: Job }) {
  const why = whyHere(job)
  if (why === null) return null
  return (
    <span className={classes.reason} title={why}>
      {job.state === "queued" && <Place job={job} />}
      {why}
    </span>
  )
}

function Place({ job }: { job: Job }) {
  const now = useNow(5_000)
  if (!job.position) return null
  const left_s = job.predicted_start ? secondsBetween(now, job.predicted_start) : null
  const when = left_s === null ? "" : left_s < 5 ? ", starts soon" : `, starts in ${duration(settled_s(left_s))}`
  return <strong>{`No. ${job.position}${when}. `}</strong>
}

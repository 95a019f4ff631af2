/** The last value of a job's main metric, with the line it has come along. */
import { useQuery } from "@tanstack/react-query"

import type { Job } from "../api/types"
import { figure } from "../format/numbers"
import { Sparkline } from "../parts/Sparkline"
import classes from "./Jobs.module.css"
import { mainMetric, trailQuery } from "./trails"

export function MetricTrail({ job }: { job: Job }) {
  const name = mainMetric(job.progress)
  const { data: values = [] } = useQuery(trailQuery(job))
  if (name === undefined) return null
  const last = figure(job.progress?.values[name], "not finite")
  const short = name.replace(/^train\//, "")
  return (
    <div className={classes.metric}>
      <Sparkline values={values} label={`${name} so far`} width={52} height={18} />
      <span className={classes.figure} title={`${name} ${last}`}>
        <span className={classes.cut}>{last}</span>
        <span className={`${classes.second} ${classes.cut}`}>{short}</span>
      </span>
    </div>
  )
}

/** The last value of a job's main metric, with the line it has come along. */
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { useEffect, useState } from "react"

import type { Job } from "../api/types"
import { figure } from "../format/numbers"
import classes from "./Jobs.module.css"
import { Sparkline } from "./Sparkline"
import { mainMetric, trailQuery } from "./trails"

/** A row that is only scrolled past asks for nothing. */
const SETTLE_MS = 250

export function MetricTrail({ job }: { job: Job }) {
  const client = useQueryClient()
  const [isSettled, setSettled] = useState(() => client.getQueryData(trailQuery(job).queryKey) !== undefined)
  useEffect(() => {
    if (isSettled) return
    const timer = setTimeout(() => setSettled(true), SETTLE_MS)
    return () => clearTimeout(timer)
  }, [isSettled])
  const name = mainMetric(job.progress)
  if (name === undefined) return null
  const last = figure(job.progress?.values[name], "not finite")
  return (
    <div className={classes.metric}>
      {isSettled && <Trail job={job} name={name} />}
      <span className={classes.figure} title={`${name} ${last}`}>
        <span className={classes.cut}>{last}</span>
        <span className={`${classes.second} ${classes.cut}`}>{name.replace(/^train\//, "")}</span>
      </span>
    </div>
  )
}

function Trail({ job, name }: { job: Job; name: string }) {
  const { data: values = [] } = useQuery(trailQuery(job))
  return <Sparkline values={values} label={`${name} of job ${job.id}`} />
}

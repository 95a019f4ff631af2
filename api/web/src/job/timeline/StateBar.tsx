/** A job's states along its time, as one bar, with how long it was in each. */
import { useQuery } from "@tanstack/react-query"

import { api, data } from "../../api/client"
import { keys } from "../../api/queries"
import type { Job } from "../../api/types"
import { useNow } from "../../format/now"
import { duration, secondsBetween } from "../../format/times"
import { StateBadge } from "../../parts/StateBadge"
import classes from "./StateBar.module.css"
import { secondsByState, stretchesOf } from "./stretches"

/** So many changes of state are drawn; a job with more has been lost again and again. */
const MOST = 1000

export function StateBar({ job }: { job: Job }) {
  const now = useNow(1_000)
  const { data: events } = useQuery({
    queryKey: [...keys.events(job.id), "states"],
    queryFn: async ({ signal }) => {
      const query = { kind: ["submitted", "state"], limit: MOST }
      const params = { path: { job_id: job.id }, query }
      return (await data(api.GET("/jobs/{job_id}/events", { params, signal }))).items
    },
  })
  const stretches = stretchesOf(events ?? [])
  if (stretches.length === 0) return null
  return (
    <div>
      <div className={classes.bar} aria-hidden>
        {stretches.map(({ id, state, from, to }) => (
          <span
            key={id}
            data-state={state}
            className={classes.stretch}
            style={{ flexGrow: Math.max(0.001, secondsBetween(from, to ?? now)) }}
            title={`${state}: ${duration(secondsBetween(from, to ?? now))}`}
          />
        ))}
      </div>
      <ul className={classes.sums}>
        {secondsByState(stretches, now).map(([state, seconds]) => (
          <li key={state}>
            <StateBadge state={state} /> {duration(seconds)}
          </li>
        ))}
      </ul>
    </div>
  )
}

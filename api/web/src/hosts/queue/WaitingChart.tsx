/** What waits, in planned order: each from when it is foretold to start. */
import { Link } from "wouter"

import { duration } from "../../format/times"
import { settled_s } from "../../format/progress"
import { place, type Axis } from "./axis"
import { Chart, Lane, Lanes } from "./Chart"
import { stretchOf } from "./foretold"
import type { WaitingJob } from "./line"

export function WaitingChart({ jobs, axis }: { jobs: readonly WaitingJob[]; axis: Axis }) {
  return (
    <Chart label="When what waits is foretold to start" axis={axis}>
      <Lanes label="Waiting jobs" axis={axis}>
        {jobs.map((job) => (
          <WaitingLane key={job.id} job={job} axis={axis} />
        ))}
      </Lanes>
    </Chart>
  )
}

function WaitingLane({ job, axis }: { job: WaitingJob; axis: Axis }) {
  const stretch = stretchOf(job, axis.now_ms)
  const wait_s = stretch && (stretch.from_ms - axis.now_ms) / 1000
  return (
    <Lane
      kind="waiting"
      hasEnd={stretch !== null && stretch.to_ms !== null}
      bar={stretch && place(axis, stretch.from_ms, stretch.to_ms)}
      words={wait_s === null ? "no start foretold" : wait_s < 1 ? "starts soon" : `in ${duration(settled_s(wait_s))}`}
    >
      {typeof job.position === "number" && `${job.position}. `}
      <Link href={`/jobs/${job.id}`}>
        #{job.id} {job.name}
      </Link>
    </Lane>
  )
}

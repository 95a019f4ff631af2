/** What runs: for each host a lane for each job's devices, until the job is foretold to end. */
import { Text } from "@mantine/core"
import { useMemo } from "react"
import { Link } from "wouter"

import type { Host } from "../../api/types"
import { count } from "../../format/numbers"
import { settled_s } from "../../format/progress"
import { duration } from "../../format/times"
import { devicesInWords, HOST_STATES, stateOf } from "../hostState"
import type { RunningJob } from "../runningJobs"
import { place, type Axis } from "./axis"
import { Chart, Lane, Lanes } from "./Chart"
import { endOf } from "./foretold"
import { lanesOf } from "./lanes"

/** Most hosts that are drawn. */
const MOST_HOSTS = 100

interface RunningChartProps {
  hosts: readonly Host[]
  jobs: Record<number, RunningJob>
  axis: Axis
}

export function RunningChart({ hosts: all, jobs, axis }: RunningChartProps) {
  const hosts = useMemo(() => lanesOf(all), [all])
  if (hosts.length === 0) return <Text size="sm">Nothing runs.</Text>
  const more = hosts.length - MOST_HOSTS
  return (
    <>
      <Chart label="What runs on which devices" axis={axis}>
        {hosts.slice(0, MOST_HOSTS).map(({ host, lanes }) => (
          <section key={host.name} aria-label={host.name}>
            <h3>
              <Link href={`/hosts#${encodeURIComponent(host.name)}`}>{host.name}</Link>{" "}
              <span>
                {stateOf(host) === "open" ? "" : `${HOST_STATES[stateOf(host)].toLowerCase()}, `}
                {devicesInWords(host.devices)}
              </span>
            </h3>
            <Lanes label={`Jobs on ${host.name}`} axis={axis}>
              {lanes.map(({ jobId, devices }) => (
                <RunningLane key={jobId} id={jobId} devices={devices} job={jobs[jobId]} axis={axis} />
              ))}
            </Lanes>
          </section>
        ))}
      </Chart>
      {more > 0 && (
        <Text size="sm" mt="xs">
          and {more === 1 ? "1 more host" : `${count(more)} more hosts`}
        </Text>
      )}
    </>
  )
}

interface RunningLaneProps {
  id: number
  devices: string
  /** Undefined while it is on its way, or where more run than are asked for. */
  job: RunningJob | undefined
  axis: Axis
}

function RunningLane({ id, devices, job, axis }: RunningLaneProps) {
  const end = job ? endOf(job, axis.now_ms) : null
  const began = job?.started_at ? new Date(job.started_at).getTime() : axis.now_ms
  return (
    <Lane
      kind="running"
      hasEnd={end !== null}
      bar={place(axis, began, end)}
      words={`${devices}, ${endInWords(job, end, axis.now_ms)}`}
    >
      <Link href={`/jobs/${id}`}>
        #{id}
        {job && ` ${job.name}`}
      </Link>
    </Lane>
  )
}

function endInWords(job: RunningJob | undefined, end: number | null, now_ms: number): string {
  if (job?.intent === "cancel") return "being cancelled"
  if (job?.intent === "pause") return "pauses"
  if (job?.state === "starting") return "starts"
  return end === null ? "end not known" : `ends in ${duration(settled_s((end - now_ms) / 1000))}`
}

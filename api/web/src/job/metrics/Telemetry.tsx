/** What a job's GPUs did while it had them, on the time axis of its metrics. */
import { Text, Title } from "@mantine/core"
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { useMemo } from "react"

import { api, data } from "../../api/client"
import type { DeviceSample, Job } from "../../api/types"
import type { Origin, Range } from "../../charts/axis"
import { Chart } from "../../charts/Chart"
import classes from "../../charts/Chart.module.css"
import { extentOf } from "../../charts/lines"
import type { Mark } from "../../charts/marks"
import type { ChartView } from "../../charts/view"
import { bytes, count } from "../../format/numbers"
import { ErrorNote } from "../../parts/ErrorNote"
import { marksOf } from "./attemptMarks"
import { newestSamples, type Samples } from "./samples"
import { telemetryLines, type Quantity } from "./telemetryLines"

interface TelemetryProps {
  job: Job
  origin: Origin
  view: ChartView
  /** What the metrics show of their axis. */
  range: Range | null
  onZoom: (range: Range | null) => void
  marks: readonly Mark[]
}

const CHARTS: readonly { quantity: Quantity; title: string; format: (value: number) => string }[] = [
  { quantity: "utilisation", title: "Utilisation", format: (value) => `${Math.round(value)} %` },
  { quantity: "memory_bytes", title: "Memory in use", format: (value) => bytes(value) },
  { quantity: "temperature_c", title: "Temperature", format: (value) => `${count(Math.round(value))} °C` },
  { quantity: "power_w", title: "Power", format: (value) => `${count(Math.round(value))} W` },
]

export function Telemetry({ job, origin, view, range, onZoom, marks }: TelemetryProps) {
  const isSameAxis = view.axis === "clock" || view.axis === "elapsed"
  const axis = view.axis === "clock" ? "clock" : "elapsed"
  const samples = useSamples(job, isSameAxis && view.zoom ? timesOf(view.zoom, axis, origin) : null)
  const charts = useMemo(
    () =>
      CHARTS.map((chart) => ({
        ...chart,
        lines: telemetryLines(samples.data?.items ?? [], chart.quantity, axis, origin),
      })).filter(({ lines }) => lines.length > 0),
    [samples.data, axis, origin],
  )
  const own = extentOf(charts.flatMap(({ lines }) => lines))
  // Smoothed and by powers of ten neither percent nor degrees say more.
  const itsView: ChartView = { ...view, axis, smoothing: 0, isLog: false }

  return (
    <section aria-label="Devices">
      <Title order={2} size="h4" mt="lg" mb="xs">
        Devices
      </Title>
      {samples.error && <ErrorNote error={samples.error} onRetry={() => void samples.refetch()} />}
      {samples.data && charts.length === 0 && (
        <Text size="sm" c="dimmed">
          Nothing was read {view.zoom && isSameAxis ? "in this time" : "yet"}: only GPUs tell what they do, CPU slots
          and simulated devices do not.
        </Text>
      )}
      {charts.length > 0 && !isSameAxis && (
        <Text size="sm" c="dimmed" mb="xs">
          By time since the start; choose an axis of time above to see metrics and devices side by side.
        </Text>
      )}
      {samples.data?.isCut && (
        <Text size="sm" c="dimmed" mb="xs">
          Only the last {count(samples.data.items.length)} readings are shown; zoom into a time to see those of it.
        </Text>
      )}
      <div className={classes.grid}>
        {charts.map(({ quantity, title, format, lines }) => (
          <Chart
            key={quantity}
            title={title}
            lines={lines}
            marks={isSameAxis ? marks : NO_MARKS}
            view={itsView}
            range={isSameAxis ? (view.zoom ?? widest(range, own)) : null}
            onZoom={isSameAxis ? onZoom : ignore}
            syncKey={`job ${job.id} ${axis}`}
            format={format}
            fileStem={`job-${job.id}`}
          />
        ))}
      </div>
    </section>
  )
}

const NO_MARKS: ReturnType<typeof marksOf> = []
const PAGE = 1000
const EVERY_MS = 30_000

/** Read the samples of a stretch of time, or the newest of all; each further time only what has come since. */
function useSamples(job: Job, times: { begin: number; end: number } | null) {
  const queryKey = ["live", "telemetry", job.id, times]
  return useQuery({
    queryKey,
    placeholderData: keepPreviousData,
    // No event tells of them.
    refetchInterval: job.finished_at === null ? EVERY_MS : false,
    queryFn: ({ signal, client }) => {
      const whole = { begin: Date.parse(job.created_at), end: Date.parse(job.finished_at ?? "") || Date.now() }
      const asked = { ...(times ?? whole), isOpen: times === null }
      return newestSamples(
        (begin, end) => readSamples(job.id, begin, end, signal),
        asked,
        client.getQueryData<Samples>(queryKey),
      )
    },
  })
}

async function readSamples(job: number, begin: number, end: number | undefined, signal: AbortSignal) {
  const from = new Date(begin).toISOString()
  const to = end === undefined ? {} : { to: new Date(end).toISOString() }
  const items: DeviceSample[] = []
  let cursor: string | undefined
  for (;;) {
    const query = { size: PAGE, from, ...to, ...(cursor === undefined ? {} : { cursor }) }
    const params = { path: { job_id: job }, query }
    const answer = await data(api.GET("/jobs/{job_id}/telemetry", { params, signal }))
    items.push(...answer.items)
    if (answer.next_page === null) return items
    cursor = answer.next_page
  }
}

function timesOf([from, to]: Range, axis: "elapsed" | "clock", origin: Origin): { begin: number; end: number } | null {
  if (axis === "elapsed" && origin.startedAt === null) return null
  const zero = axis === "clock" ? 0 : (origin.startedAt ?? 0)
  return { begin: zero + from * 1000, end: zero + to * 1000 }
}

function widest(one: Range | null, other: Range | null): Range | null {
  if (one === null || other === null) return one ?? other
  return [Math.min(one[0], other[0]), Math.max(one[1], other[1])]
}

function ignore(): void {
  // Their axis is not that of the address.
}

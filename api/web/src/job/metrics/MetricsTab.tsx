/** A job's metrics as charts that grow while it trains, and below them what its devices did meanwhile. */
import { Anchor, Button, Checkbox, Group, Text, Title } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useMemo } from "react"
import { Link } from "wouter"

import { asError } from "../../api/problems"
import { attemptsQuery } from "../../api/queries"
import type { Job } from "../../api/types"
import type { Origin } from "../../charts/axis"
import { Chart } from "../../charts/Chart"
import classes from "../../charts/Chart.module.css"
import { Controls } from "../../charts/Controls"
import { extentOf } from "../../charts/lines"
import { lineOf } from "../../charts/metricLines"
import { NO_CURVES } from "../../charts/metricStore"
import { sectionsOf } from "../../charts/panels"
import { csvFrom } from "../../charts/files"
import { save } from "../../parts/saving"
import { useDetail } from "../../charts/useDetail"
import { useMetrics } from "../../charts/useMetrics"
import { useChartView } from "../../charts/view"
import { Empty } from "../../parts/Empty"
import { ErrorNote } from "../../parts/ErrorNote"
import { Loading } from "../../parts/Loading"
import { notices } from "../../parts/notices"
import { marksOf } from "./attemptMarks"
import { Telemetry } from "./Telemetry"

export default function MetricsTab({ job }: { job: Job }) {
  const [view, change] = useChartView()
  const { axis, zoom, isTogether } = view
  const { snapshot, retry } = useMetrics([job])
  const attempts = useQuery(attemptsQuery(job.id)).data
  const startedAt = job.started_at === null ? null : Date.parse(job.started_at)
  const stepsPerEpoch = job.progress?.steps_per_epoch ?? null
  const origin = useMemo<Origin>(() => ({ startedAt, stepsPerEpoch }), [startedAt, stepsPerEpoch])
  const curves = useDetail(snapshot.jobs, [{ job: job.id, origin }], axis, zoom).get(job.id)
  const marks = useMemo(() => marksOf(attempts ?? [], axis, origin), [attempts, axis, origin])
  const error = snapshot.errors.get(job.id)

  const lines = useMemo(() => {
    const of = [...(curves ?? NO_CURVES)].map(([name, curve]) => [name, curve] as const)
    return new Map(
      of.map(([name, curve]) => [name, lineOf(curve, axis, origin, { id: name, label: name, inkIndex: 0 })]),
    )
  }, [curves, axis, origin])
  const whole = extentOf([...lines.values()])
  const common = { marks, view, range: zoom ?? whole, onZoom: (to: typeof zoom) => change({ zoom: to }) }

  return (
    <>
      {error && <ErrorNote error={error} onRetry={() => retry(job.id)} />}
      {!curves && !error && <Loading what="metrics" />}
      {curves?.size === 0 && (
        <Empty title="No metrics">
          <Text size="sm">
            {job.finished_at === null ? "They appear with its first steps." : "It has reported none."}
          </Text>
        </Empty>
      )}
      {curves && curves.size > 0 && (
        <>
          <Controls view={view} change={change} whole={whole}>
            <Checkbox
              label="Training with validation"
              checked={isTogether}
              onChange={(event) => change({ isTogether: event.currentTarget.checked })}
            />
          </Controls>
          {sectionsOf(curves.keys(), { isTogether }).map((section) => (
            <section key={section.title} aria-label={section.title}>
              <Title order={2} size="h4" mt="md" mb="xs">
                {section.title}
              </Title>
              <div className={classes.grid}>
                {section.panels.map((panel) => (
                  <Chart
                    key={panel.title}
                    {...common}
                    title={panel.title}
                    lines={panel.names.flatMap((name, inkIndex) => {
                      const line = lines.get(name)
                      return line ? { ...line, inkIndex } : []
                    })}
                    syncKey={`job ${job.id} ${axis}`}
                    csvPath={csvPath(job.id, panel.names)}
                    fileStem={`job-${job.id}`}
                  />
                ))}
              </div>
            </section>
          ))}
          <MarkList marks={marks} />
          <Group mt="md" gap="md">
            <Button variant="default" size="xs" onClick={() => saveAll(job.id)}>
              All metrics as CSV
            </Button>
            <Anchor component={Link} href={`/compare?jobs=${job.id}`} size="sm">
              Compare with other jobs
            </Anchor>
          </Group>
        </>
      )}
      <Telemetry job={job} origin={origin} view={view} range={zoom ?? whole} onZoom={common.onZoom} marks={marks} />
    </>
  )
}

function MarkList({ marks }: { marks: ReturnType<typeof marksOf> }) {
  if (marks.length === 0) return null
  return (
    <Text size="sm" c="dimmed" mt="sm" component="div">
      Broken vertical lines: {marks.map(({ title }) => title).join("; ")}.
    </Text>
  )
}

function csvPath(job: number, names: readonly string[]): string {
  const query = new URLSearchParams({ format: "csv" })
  for (const name of names) query.append("name", name)
  return `/jobs/${job}/metrics?${query.toString()}`
}

function saveAll(job: number): void {
  csvFrom(csvPath(job, [])).then(
    (content) => save(content, `job-${job}-metrics.csv`),
    (error: unknown) => notices.failed(asError(error).message),
  )
}

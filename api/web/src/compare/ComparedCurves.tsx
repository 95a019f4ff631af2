/** The curves of the compared jobs, one chart for each metric. */
import { Title } from "@mantine/core"
import { useMemo } from "react"

import type { Job } from "../api/types"
import type { Axis, Origin } from "../charts/axis"
import { Chart } from "../charts/Chart"
import classes from "../charts/Chart.module.css"
import { Controls } from "../charts/Controls"
import { extentOf, type Line } from "../charts/lines"
import type { Mark } from "../charts/marks"
import { lineOf } from "../charts/metricLines"
import type { Curves } from "../charts/metricStore"
import { sectionsOf } from "../charts/panels"
import { useDetail } from "../charts/useDetail"
import { useChartView } from "../charts/view"

export function ComparedCurves({ jobs, known }: { jobs: readonly Job[]; known: ReadonlyMap<number, Curves> }) {
  const [view, change] = useChartView()
  const { axis, zoom } = view
  const wanted = jobs.map((job) => ({ job: job.id, origin: originOf(job) }))
  const detailed = useDetail(known, wanted, axis, zoom)
  const linesByName = useMemo(() => linesOf(jobs, detailed, axis), [jobs, detailed, axis])
  const whole = extentOf([...linesByName.values()].flat())
  if (linesByName.size === 0) return null

  return (
    <>
      <Controls view={view} change={change} whole={whole} />
      {sectionsOf(linesByName.keys(), { isTogether: false }).map((section) => (
        <section key={section.title} aria-label={section.title}>
          <Title order={3} size="h5" mt="md" mb="xs">
            {section.title}
          </Title>
          <div className={classes.grid}>
            {section.panels.map(({ title }) => (
              <Chart
                key={title}
                title={title}
                headingOrder={4}
                lines={linesByName.get(title) ?? NO_LINES}
                marks={NO_MARKS}
                view={view}
                range={zoom ?? whole}
                onZoom={(to) => change({ zoom: to })}
                syncKey={`compare ${axis}`}
                fileStem={`jobs-${jobs.map(({ id }) => id).join("-")}`}
              />
            ))}
          </div>
        </section>
      ))}
    </>
  )
}

const NO_MARKS: readonly Mark[] = []
const NO_LINES: readonly Line[] = []

function originOf(job: Job): Origin {
  return {
    startedAt: job.started_at === null ? null : Date.parse(job.started_at),
    stepsPerEpoch: job.progress?.steps_per_epoch ?? null,
  }
}

function linesOf(jobs: readonly Job[], known: ReadonlyMap<number, Curves>, axis: Axis) {
  const byName = new Map<string, Line[]>()
  jobs.forEach((job, inkIndex) => {
    const shown = { id: String(job.id), label: `#${job.id} ${job.name}`, inkIndex }
    for (const [name, curve] of known.get(job.id) ?? []) {
      const line = lineOf(curve, axis, originOf(job), shown)
      byName.set(name, [...(byName.get(name) ?? []), line])
    }
  })
  return byName
}

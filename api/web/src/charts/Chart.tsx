/** One chart: its heading, curves, legend, table of values, and itself as PNG and CSV. */
import { Button, Group, Text, Title, useComputedColorScheme } from "@mantine/core"
import type uPlot from "uplot"
import { memo, useId, useMemo, useRef, useState } from "react"

import { asError } from "../api/problems"
import { count, figure } from "../format/numbers"
import { notices } from "../parts/notices"
import { useSettings } from "../settings/settings"
import type { Range } from "./axis"
import classes from "./Chart.module.css"
import { Hover } from "./hover"
import { Legend } from "./Legend"
import { areSame, columnsOf, NO_COLUMNS, type Line } from "./lines"
import type { Mark } from "./marks"
import { Plot } from "./Plot"
import { save } from "../parts/saving"
import { csvFrom, csvOf, fileName, picture } from "./files"
import { Values } from "./Values"
import { useNear } from "./near"
import type { ChartView } from "./view"

interface ChartProps {
  title: string
  /** Where its heading stands below those of the page. */
  headingOrder?: 3 | 4
  lines: readonly Line[]
  marks: readonly Mark[]
  view: ChartView
  /** What of the axis is shown; null for all there is of this chart. */
  range: Range | null
  onZoom: (range: Range | null) => void
  /** Charts of one key show the cursor at the same place. */
  syncKey: string
  /** A value as the axis, the legend and the table say it. */
  format?: (value: number) => string
  /** Path of all of its values as CSV; without it, what is shown. */
  csvPath?: string
  /** Beginning of its files' names. */
  fileStem: string
}

const HEIGHT_PX = 220
const NONE: ReadonlySet<string> = new Set()

export const Chart = memo(function Chart(props: ChartProps) {
  const {
    title,
    headingOrder = 3,
    lines,
    marks,
    view,
    range,
    onZoom,
    syncKey,
    format = figure,
    csvPath,
    fileStem,
  } = props
  const { timeZone } = useSettings()
  const scheme = useComputedColorScheme()
  const titleId = useId()
  const [hover] = useState(() => new Hover())
  const [hidden, setHidden] = useState(NONE)
  const [hasTable, setHasTable] = useState(false)
  const drawn = useRef<uPlot | null>(null)
  const place = useRef<HTMLDivElement>(null)
  const isNear = useNear(place)

  const isSmoothed = view.smoothing > 0
  const columns = useMemo(
    () => (isNear ? columnsOf(lines, { smoothing: view.smoothing, isLog: view.isLog }) : NO_COLUMNS),
    [isNear, lines, view.smoothing, view.isLog],
  )
  const isHidden = useMemo(() => lines.map(({ id }) => hidden.has(id)), [lines, hidden])
  const shape = {
    axis: view.axis,
    isLog: view.isLog,
    isSmoothed,
    scheme,
    timeZone,
    inks: lines.map(({ inkIndex }) => inkIndex),
    height: HEIGHT_PX,
    syncKey,
  }

  const savePicture = async () => {
    if (drawn.current === null) return
    const shown = lines.filter(({ id }) => !hidden.has(id))
    save(await picture(drawn.current.ctx.canvas, { title, lines: shown, scheme }), `${fileName(fileStem, title)}.png`)
  }
  const saveValues = async () => {
    const content = csvPath === undefined ? csvOf(lines, view.axis) : await csvFrom(csvPath)
    save(content, `${fileName(fileStem, title)}.csv`)
  }

  return (
    <figure className={classes.chart} aria-labelledby={titleId}>
      <Group justify="space-between" wrap="nowrap" gap="xs" mb={4}>
        <Title order={headingOrder} id={titleId} className={classes.title}>
          {title}
        </Title>
        <Group gap={4} wrap="nowrap">
          <Button
            variant="default"
            size="compact-xs"
            aria-expanded={hasTable}
            aria-label={`Values of ${title}`}
            onClick={() => setHasTable(!hasTable)}
          >
            Values
          </Button>
          <Button variant="default" size="compact-xs" aria-label={`PNG of ${title}`} onClick={tried(savePicture)}>
            PNG
          </Button>
          <Button variant="default" size="compact-xs" aria-label={`CSV of ${title}`} onClick={tried(saveValues)}>
            CSV
          </Button>
        </Group>
      </Group>
      <Plot
        place={place}
        isNear={isNear}
        shape={shape}
        columns={columns}
        marks={marks}
        range={range}
        isHidden={isHidden}
        format={format}
        onZoom={onZoom}
        onCursor={hover.set}
        onPlot={(plot) => {
          drawn.current = plot
        }}
      />
      <Legend
        lines={lines}
        columns={columns}
        hover={hover}
        axis={view.axis}
        timeZone={timeZone}
        scheme={scheme}
        isSmoothed={isSmoothed}
        isHidden={isHidden}
        format={format}
        onToggle={(id) => setHidden((before) => toggled(before, id))}
      />
      {columns.hidden > 0 && (
        <Text size="xs" c="dimmed">
          Values of zero or below, which a logarithmic scale cannot show: {count(columns.hidden)}.
        </Text>
      )}
      {columns.gaps.length > 0 && (
        <Text size="xs" c="dimmed">
          × NaN, ▲ ∞, ▼ −∞: {count(columns.gaps.length)} of the values shown are not finite.
        </Text>
      )}
      {hasTable && <Values title={title} lines={lines} axis={view.axis} timeZone={timeZone} format={format} />}
    </figure>
  )
}, isAsShown)

/** Of many charts only those are drawn anew whose curves have changed: handlers are made anew with each update. */
function isAsShown(before: ChartProps, now: ChartProps): boolean {
  return (
    areSame(before.lines, now.lines) &&
    before.marks === now.marks &&
    before.range?.[0] === now.range?.[0] &&
    before.range?.[1] === now.range?.[1] &&
    before.title === now.title &&
    before.view.axis === now.view.axis &&
    before.view.smoothing === now.view.smoothing &&
    before.view.isLog === now.view.isLog &&
    before.csvPath === now.csvPath
  )
}

function toggled(ids: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const others = new Set(ids)
  if (!others.delete(id)) others.add(id)
  return others
}

/** Say it where making a file fails. */
function tried(act: () => Promise<void>): () => void {
  return () => {
    act().catch((error: unknown) => notices.failed(asError(error).message))
  }
}

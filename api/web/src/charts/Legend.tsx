/** A chart's lines by name, with the value under the cursor or else the last one; each can be taken out and put back. */
import { useSyncExternalStore } from "react"

import { figure } from "../format/numbers"
import { place, type Axis } from "./axis"
import classes from "./Chart.module.css"
import type { Cursor, Hover } from "./hover"
import type { Columns, Line } from "./lines"
import { ink, type Scheme } from "./palette"

interface LegendProps {
  lines: readonly Line[]
  columns: Columns
  hover: Hover
  axis: Axis
  timeZone: string
  scheme: Scheme
  isSmoothed: boolean
  isHidden: readonly boolean[]
  format: (value: number) => string
  onToggle: (id: string) => void
}

export function Legend(props: LegendProps) {
  const { lines, columns, hover, axis, timeZone, scheme, isHidden, onToggle } = props
  const cursor = useSyncExternalStore(hover.subscribe, hover.get)
  const x = cursor && columns.data[0][cursor.index]
  return (
    <div className={classes.legend}>
      {lines.map((line, number) => {
        const isShown = isHidden[number] !== true
        return (
          <button
            key={line.id}
            type="button"
            className={classes.line}
            aria-pressed={isShown}
            title={isShown ? "Take it out" : "Put it back"}
            onClick={() => onToggle(line.id)}
          >
            <Swatch index={line.inkIndex} scheme={scheme} />
            <span className={classes.name}>{line.label}</span>
            <span className={classes.value}>{valueOf(props, number, cursor)}</span>
          </button>
        )
      })}
      <span className={classes.where}>
        {x === null || x === undefined ? "last values" : `at ${WORDS[axis]}${place(x, axis, timeZone)}`}
      </span>
    </div>
  )
}

const WORDS: Record<Axis, string> = { step: "step ", epoch: "epoch ", elapsed: "", clock: "" }

/** The value, behind it in brackets the measured one where the curve is smoothed. */
function valueOf({ columns, lines, isSmoothed, format }: LegendProps, number: number, cursor: Cursor | null): string {
  const line = lines[number]
  if (!line || line.values.length === 0) return "–"
  const each = isSmoothed ? 2 : 1
  const series = 1 + number * each
  if (cursor === null) {
    const end = line.values.length - 1
    return text(line.values[end] ?? null, line.kinds?.[end] ?? null, format)
  }
  const index = cursor.indices[series] ?? cursor.index
  const value = columns.data[series]?.[index]
  if (value === undefined || value === null) {
    const x = columns.data[0][index]
    const point = line.at.findIndex((at) => at === x)
    return text(null, line.kinds?.[point] ?? null, format)
  }
  const smooth = isSmoothed ? columns.data[series + 1]?.[index] : undefined
  return smooth === undefined || smooth === null ? format(value) : `${format(smooth)} (${format(value)})`
}

function text(value: number | null, kind: NonNullable<Line["kinds"]>[number], format: (value: number) => string) {
  return value === null ? figure(null, kind) : format(value)
}

export function Swatch({ index, scheme }: { index: number; scheme: Scheme }) {
  const { colour, dash } = ink(index, scheme)
  return (
    <svg width={26} height={10} aria-hidden className={classes.swatch}>
      <line x1={0} y1={5} x2={26} y2={5} stroke={colour} strokeWidth={2.5} strokeDasharray={dash.join(" ")} />
    </svg>
  )
}

/** Lines of a chart and the columns that uPlot draws of them. */
import uPlot from "uplot"

import type { Kind } from "./curve"
import { smoothed } from "./smoothing"

export interface Line {
  /** One of its kind in the chart. */
  id: string
  label: string
  /** Its place in the palette. */
  inkIndex: number
  /** Where its points are on the axis. */
  at: readonly number[]
  /** Null where there is no finite value. */
  values: readonly (number | null)[]
  kinds?: readonly Kind[]
}

/** A point that has no finite value, for a mark at the edge of the chart. */
export interface Gap {
  x: number
  kind: NonNullable<Kind>
}

export interface Columns {
  /** The places, then for each line its values, and behind them its smoothed values if it is smoothed. */
  data: uPlot.AlignedData
  gaps: readonly Gap[]
  /** Values that a logarithmic scale cannot show. */
  hidden: number
}

export const NO_COLUMNS: Columns = { data: [[]], gaps: [], hidden: 0 }

// eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- a const enum of declarations alone, whose members cannot be named here
const EXPAND = 2 as uPlot.JoinNullMode.Expand

/** Return what there is to draw, all lines over one column of places. */
export function columnsOf(
  lines: readonly Line[],
  { smoothing, isLog }: { smoothing: number; isLog: boolean },
): Columns {
  const gaps: Gap[] = []
  let hidden = 0
  const tables: uPlot.AlignedData[] = []
  for (const line of lines) {
    const order = ascending(line.at)
    const at = order ? order.map((index) => line.at[index] ?? 0) : [...line.at]
    let values = order ? order.map((index) => line.values[index] ?? null) : [...line.values]
    line.kinds?.forEach((kind, index) => {
      if (kind !== null) gaps.push({ x: line.at[index] ?? 0, kind })
    })
    if (isLog) {
      values = values.map((value) => {
        if (value === null || value > 0) return value
        hidden += 1
        return null
      })
    }
    tables.push([at, values, ...(smoothing > 0 ? [smoothed(values, smoothing)] : [])])
  }
  if (tables.length === 0) return NO_COLUMNS
  const modes = tables.map((table) => table.map(() => EXPAND))
  return { data: uPlot.join(tables, modes), gaps, hidden }
}

/** The order of ascending places, or null where they are so already: by time a later step may be of an older attempt. */
function ascending(at: readonly number[]): number[] | null {
  if (at.every((x, index) => index === 0 || x >= (at[index - 1] ?? x))) return null
  return at.map((_, index) => index).toSorted((one, other) => (at[one] ?? 0) - (at[other] ?? 0))
}

/** Return the range that all lines lie in; null where there is nothing. */
export function extentOf(lines: readonly Pick<Line, "at">[]): readonly [number, number] | null {
  let low = Number.POSITIVE_INFINITY
  let high = Number.NEGATIVE_INFINITY
  for (const { at } of lines) {
    for (const x of at) {
      if (x < low) low = x
      if (x > high) high = x
    }
  }
  return low <= high ? [low, high] : null
}

/** Whether lines would be drawn alike. */
export function areSame(some: readonly Line[], others: readonly Line[]): boolean {
  return (
    some.length === others.length &&
    some.every((line, index) => {
      const other = others[index]
      return (
        other !== undefined &&
        line.id === other.id &&
        line.label === other.label &&
        line.inkIndex === other.inkIndex &&
        line.at === other.at &&
        line.values === other.values
      )
    })
  )
}

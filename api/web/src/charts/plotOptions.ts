/** What uPlot is told of a chart: scales, axes, lines, cursor. */
import uPlot from "uplot"

import { place, TIME_STEPS, type Axis, type Range } from "./axis"
import type { Cursor } from "./hover"
import { GROUNDS, ink, type Scheme } from "./palette"

/** What a plot is made anew for; everything else it takes as it stands. */
export interface Shape {
  axis: Axis
  isLog: boolean
  isSmoothed: boolean
  scheme: Scheme
  timeZone: string
  /** Places in the palette, one for each line. */
  inks: readonly number[]
  height: number
  /** Charts of one key show the cursor at the same place. */
  syncKey: string
}

interface Reactions {
  /** What of the axis is to be shown; null for all there is. */
  range: () => Range | null
  /** A value as the vertical axis says it. */
  format: (value: number) => string
  onZoom: (range: Range | null) => void
  onCursor: (cursor: Cursor | null) => void
  draw: (plot: uPlot) => void
}

// eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- a const enum of declarations alone, whose members cannot be named here
const LOGARITHMIC = 3 as uPlot.Scale.Distr.Logarithmic
/** As measured, behind what is smoothed. */
const FAINT = 0.3
const FONT = "12px system-ui, sans-serif"

export function optionsOf(shape: Shape, width: number, reactions: Reactions): uPlot.Options {
  const { axis, isLog, scheme, timeZone } = shape
  const ground = GROUNDS[scheme]
  const strokes = {
    stroke: ground.text,
    grid: { stroke: ground.grid, width: 1 },
    ticks: { stroke: ground.grid, width: 1 },
  }
  return {
    width,
    height: shape.height,
    legend: { show: false },
    padding: [8, axis === "clock" ? 40 : 26, 0, 0],
    tzDate: (at) => (timeZone === "local" ? new Date(at * 1000) : uPlot.tzDate(new Date(at * 1000), timeZone)),
    scales: {
      x: {
        time: axis === "clock",
        range: (_, low, high) => shownRange(reactions.range(), low, high),
      },
      y: isLog ? { distr: LOGARITHMIC, range: (_, low, high) => logRange(low, high) } : {},
    },
    axes: [
      {
        ...strokes,
        font: FONT,
        size: 32,
        space: axis === "clock" || axis === "elapsed" ? 90 : 70,
        ...(axis === "elapsed" ? { incrs: TIME_STEPS } : {}),
        ...(axis === "step" ? { incrs: wholeSteps() } : {}),
        values: (_, splits, __, ___, grain) => splits.map((x) => place(x, axis, timeZone, grain)),
      },
      {
        ...strokes,
        font: FONT,
        size: (_, values) => 20 + 7 * Math.max(3, ...((values as string[] | null) ?? []).map((text) => text.length)),
        // A logarithmic scale leaves out the labels between its powers.
        values: (_, splits) => splits.map((y) => ((y as number | null) === null ? "" : reactions.format(y))),
      },
    ],
    series: [{}, ...shape.inks.flatMap((index) => lineOptions(ink(index, scheme), shape.isSmoothed))],
    cursor: {
      y: false,
      points: { size: 6 },
      drag: { x: true, y: false, setScale: false, dist: 5 },
      sync: { key: shape.syncKey, setSeries: false, scales: ["x", null] },
      bind: {
        dblclick: () => () => {
          reactions.onZoom(null)
          return null
        },
      },
    },
    hooks: {
      setSelect: [
        (plot) => {
          const { left, width: wide } = plot.select
          if (wide <= 0) return
          const range: Range = [plot.posToVal(left, "x"), plot.posToVal(left + wide, "x")]
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
          reactions.onZoom(range)
        },
      ],
      setCursor: [(plot) => reactions.onCursor(cursorOf(plot))],
      draw: [reactions.draw],
    },
  }
}

function cursorOf({ cursor }: uPlot): Cursor | null {
  const { idx, idxs } = cursor
  return idx === null || idx === undefined || idxs === undefined ? null : { index: idx, indices: [...idxs] }
}

function lineOptions({ colour, dash }: { colour: string; dash: number[] }, isSmoothed: boolean): uPlot.Series[] {
  const line: uPlot.Series = { stroke: colour, width: 1.75, dash, points: { size: 5, fill: colour } }
  if (!isSmoothed) return [line]
  return [
    { stroke: colour, width: 1, alpha: FAINT, points: { show: false } },
    { ...line, points: { show: false } },
  ]
}

function shownRange(zoom: Range | null, low: number | null, high: number | null): uPlot.Range.MinMax {
  const [from, to] = zoom ?? [low ?? 0, high ?? 1]
  // One point alone stands in the middle.
  return from === to ? [from - 1, to + 1] : [from, to]
}

function logRange(low: number | null, high: number | null): uPlot.Range.MinMax {
  return low === null || high === null ? [0.1, 10] : uPlot.rangeLog(low, high, 10, false)
}

/** There is no half a step; a job may count them up to 2^53. */
function wholeSteps(): number[] {
  return Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat()
}

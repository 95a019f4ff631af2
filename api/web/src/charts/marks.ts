/** What is drawn over the lines: where attempts began, and where values are not finite. */
import type uPlot from "uplot"

import type { Gap } from "./lines"
import type { Ground } from "./palette"

/** A vertical line across the chart. */
export interface Mark {
  x: number
  /** A few letters beside it. */
  label: string
  /** The same in words, for the list below the charts. */
  title: string
}

/** Marks and gaps nearer than this to the one before are drawn as one, in pixels. */
const NEAR_PX = 9
const SIGNS: Record<Gap["kind"], string> = { nan: "×", inf: "▲", "-inf": "▼" }

export function drawMarks(plot: uPlot, marks: readonly Mark[], ground: Ground): void {
  const { ctx, bbox } = plot
  const ratio = devicePixelRatio
  ctx.save()
  ctx.strokeStyle = ground.mark
  ctx.fillStyle = ground.text
  ctx.lineWidth = ratio
  ctx.setLineDash([4 * ratio, 4 * ratio])
  ctx.font = `${11 * ratio}px system-ui, sans-serif`
  ctx.textBaseline = "top"
  ctx.textAlign = "left"
  let free = Number.NEGATIVE_INFINITY
  for (const { x, label } of marks) {
    const left = Math.round(plot.valToPos(x, "x", true)) + 0.5
    if (left < bbox.left || left > bbox.left + bbox.width) continue
    ctx.beginPath()
    ctx.moveTo(left, bbox.top)
    ctx.lineTo(left, bbox.top + bbox.height)
    ctx.stroke()
    const width = ctx.measureText(label).width
    const begin = Math.min(left + 3 * ratio, bbox.left + bbox.width - width)
    if (begin < free) continue
    ctx.fillText(label, begin, bbox.top + 2 * ratio)
    free = begin + width + 4 * ratio
  }
  ctx.restore()
}

export function drawGaps(plot: uPlot, gaps: readonly Gap[], ground: Ground): void {
  const { ctx, bbox } = plot
  const ratio = devicePixelRatio
  ctx.save()
  ctx.fillStyle = ground.text
  ctx.font = `${12 * ratio}px system-ui, sans-serif`
  ctx.textAlign = "center"
  const taken: Record<Gap["kind"], number> = {
    nan: Number.NEGATIVE_INFINITY,
    inf: Number.NEGATIVE_INFINITY,
    "-inf": Number.NEGATIVE_INFINITY,
  }
  for (const { x, kind } of gaps) {
    const left = plot.valToPos(x, "x", true)
    if (left < bbox.left || left > bbox.left + bbox.width || Math.abs(left - taken[kind]) < NEAR_PX * ratio) continue
    taken[kind] = left
    const isAbove = kind === "inf"
    ctx.textBaseline = isAbove ? "top" : "bottom"
    ctx.fillText(SIGNS[kind], left, isAbove ? bbox.top + 1 : bbox.top + bbox.height - 1)
  }
  ctx.restore()
}

/** How charts are looked at: axis, smoothing, scale and zoom, kept in the address. */
import { useSearchParams } from "wouter"

import { AXES, type Axis, type Range } from "./axis"

export interface ChartView {
  axis: Axis
  /** 0 (as measured) to 0.99. */
  smoothing: number
  isLog: boolean
  /** Metrics of one name below different prefixes in one chart: train/loss with val/loss. */
  isTogether: boolean
  /** What of the axis is shown, in its own unit; null for all. */
  zoom: Range | null
}

export const MOST_SMOOTHING = 0.99

/** Return what the address says; whatever makes no sense in it counts as not said. */
export function viewOf(params: URLSearchParams): ChartView {
  const axis = AXES.find((each) => each === params.get("axis")) ?? "step"
  const smoothing = Number(params.get("smoothing") ?? 0)
  return {
    axis,
    smoothing: smoothing > 0 && smoothing <= MOST_SMOOTHING ? smoothing : 0,
    isLog: params.get("scale") === "log",
    isTogether: params.get("together") === "1",
    zoom: zoomOf(params.get("zoom")),
  }
}

function zoomOf(text: string | null): Range | null {
  const [from, to] = (text ?? "").split("..").map((each) => (each.trim() === "" ? Number.NaN : Number(each)))
  if (from === undefined || to === undefined || !Number.isFinite(from) || !Number.isFinite(to) || from >= to)
    return null
  return [from, to]
}

/** Return the address's parameters with the changes in them; what is as it is by itself is left out. */
export function withChanges(params: URLSearchParams, changes: Partial<ChartView>): URLSearchParams {
  const view = { ...viewOf(params), ...changes }
  // Another axis has another unit.
  if (changes.axis !== undefined && changes.axis !== viewOf(params).axis) view.zoom = null
  const next = new URLSearchParams(params)
  const set = (name: string, value: string | null) => (value === null ? next.delete(name) : next.set(name, value))
  set("axis", view.axis === "step" ? null : view.axis)
  set("smoothing", view.smoothing === 0 ? null : String(view.smoothing))
  set("scale", view.isLog ? "log" : null)
  set("together", view.isTogether ? "1" : null)
  set("zoom", view.zoom && `${shortened(view.zoom[0])}..${shortened(view.zoom[1])}`)
  return next
}

/** Six digits behind the point are more than any screen shows. */
function shortened(x: number): string {
  return String(Math.round(x * 1e6) / 1e6)
}

export function useChartView(): [ChartView, (changes: Partial<ChartView>) => void] {
  const [params, setParams] = useSearchParams()
  return [viewOf(params), (changes) => setParams((before) => withChanges(before, changes), { replace: true })]
}

/** Return a zoom `factor` times as near, about its middle; null where that is all there is. */
export function zoomedBy(shown: Range, whole: Range, factor: number): Range | null {
  const middle = (shown[0] + shown[1]) / 2
  const half = (shown[1] - shown[0]) / 2 / factor
  return within([middle - half, middle + half], whole)
}

/** Return the zoom moved by a share of what it shows. */
export function movedBy(shown: Range, whole: Range, share: number): Range | null {
  const span = shown[1] - shown[0]
  const from = Math.min(Math.max(shown[0] + share * span, whole[0]), Math.max(whole[1] - span, whole[0]))
  return within([from, from + span], whole)
}

function within(range: Range, whole: Range): Range | null {
  const from = Math.max(range[0], whole[0])
  const to = Math.min(range[1], whole[1])
  return from <= whole[0] && to >= whole[1] ? null : [from, to]
}

/** What the horizontal axis of charts counts: steps, epochs, time since the start, or time of day. */
import { duration } from "../format/times"
import { count } from "../format/numbers"
import type { Curve } from "./curve"

export const AXES = ["step", "epoch", "elapsed", "clock"] as const

export type Axis = (typeof AXES)[number]

export const AXIS_TITLES: Record<Axis, string> = {
  step: "Step",
  epoch: "Epoch",
  elapsed: "Time since start",
  clock: "Time of day",
}

export type Range = readonly [number, number]

/** What of a job places its points on an axis. */
export interface Origin {
  /** Milliseconds since the epoch; null before it began. */
  startedAt: number | null
  /** Null where the job has not told it: the points of an epoch are then spread evenly over it. */
  stepsPerEpoch: number | null
}

/** Return where on the axis each point of a curve is. Times are seconds, as uPlot has them. */
export function positions(curve: Curve, axis: Axis, origin: Origin): readonly number[] {
  switch (axis) {
    case "step":
      return curve.steps
    case "epoch": {
      const { stepsPerEpoch } = origin
      return stepsPerEpoch ? curve.steps.map((step) => step / stepsPerEpoch) : spread(curve.epochs)
    }
    case "elapsed": {
      const start = origin.startedAt ?? curve.times[0] ?? 0
      return curve.times.map((at) => (at - start) / 1000)
    }
    case "clock":
      return curve.times.map((at) => at / 1000)
  }
}

/** The last point of an epoch is at its end, and the others evenly before it. */
function spread(epochs: readonly number[]): number[] {
  const many = new Map<number, number>()
  for (const epoch of epochs) many.set(epoch, (many.get(epoch) ?? 0) + 1)
  const seen = new Map<number, number>()
  return epochs.map((epoch) => {
    const number = (seen.get(epoch) ?? 0) + 1
    seen.set(epoch, number)
    return epoch - 1 + number / (many.get(epoch) ?? 1)
  })
}

/** Steps from one to another, or on to the end. */
export interface Steps {
  from: number
  to: number | null
}

/**
 * Return which steps lie in a range of the axis; null for none. Where the newest point is among them it is open at the end:
 * what is yet to come is then no other range.
 */
export function stepsWithin(curves: Iterable<Curve>, range: Range, axis: Axis, origin: Origin): Steps | null {
  if (axis === "step") return whole(range[0], range[1])
  const { stepsPerEpoch } = origin
  if (axis === "epoch" && stepsPerEpoch) return whole(range[0] * stepsPerEpoch, range[1] * stepsPerEpoch)
  let from = Number.POSITIVE_INFINITY
  let to = Number.NEGATIVE_INFINITY
  for (const curve of curves) {
    const at = positions(curve, axis, origin)
    at.forEach((x, index) => {
      if (x < range[0] || x > range[1]) return
      const step = curve.steps[index] ?? 0
      from = Math.min(from, step)
      to = Math.max(to, index === at.length - 1 ? Number.POSITIVE_INFINITY : step)
    })
  }
  return from === Number.POSITIVE_INFINITY ? null : { from, to: Number.isFinite(to) ? to : null }
}

function whole(from: number, to: number): Steps {
  return { from: Math.max(0, Math.floor(from)), to: Math.max(0, Math.ceil(to)) }
}

const DAY_S = 86_400

/** Return a place on the axis as text; `grain` is how far apart the places beside it are, where that is known. */
export function place(x: number, axis: Axis, timeZone: string, grain = 0): string {
  switch (axis) {
    case "step":
      return count(x)
    case "epoch":
      return x.toLocaleString(undefined, { maximumFractionDigits: 2 })
    case "elapsed":
      return duration(x)
    case "clock":
      return clock(x, timeZone, grain)
  }
}

/** Distances between ticks that read well, in seconds. */
export const TIME_STEPS = [
  1,
  2,
  5,
  10,
  15,
  30,
  60,
  120,
  300,
  600,
  900,
  1800,
  3600,
  7200,
  10_800,
  21_600,
  43_200,
  DAY_S,
  2 * DAY_S,
  5 * DAY_S,
  10 * DAY_S,
  30 * DAY_S,
  90 * DAY_S,
]

const CLOCKS = new Map<string, Intl.DateTimeFormat>()

function clock(x: number, timeZone: string, grain: number): string {
  const what = grain >= DAY_S ? "day" : grain >= 60 ? "minute" : grain > 0 ? "second" : "all"
  const key = `${timeZone} ${what}`
  let made = CLOCKS.get(key)
  if (!made) {
    const options: Record<typeof what, Intl.DateTimeFormatOptions> = {
      day: { day: "numeric", month: "short" },
      minute: { hour: "2-digit", minute: "2-digit" },
      second: { timeStyle: "medium" },
      all: { dateStyle: "medium", timeStyle: "medium" },
    }
    made = new Intl.DateTimeFormat(undefined, {
      ...options[what],
      timeZone: timeZone === "local" ? undefined : timeZone,
    })
    CLOCKS.set(key, made)
  }
  return made.format(x * 1000)
}

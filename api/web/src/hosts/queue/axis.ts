/** The time axis of the plan: from a little before now to as far as is known or asked for; shares of it are from 0 to 1. */

const MIN = 60_000
const HOUR = 60 * MIN
const DAY = 24 * HOUR

/** How far ahead an axis can reach, with the distance of its ticks. */
const REACHES = [
  [10 * MIN, 2 * MIN],
  [30 * MIN, 5 * MIN],
  [HOUR, 10 * MIN],
  [3 * HOUR, 30 * MIN],
  [6 * HOUR, HOUR],
  [12 * HOUR, 2 * HOUR],
  [DAY, 4 * HOUR],
  [2 * DAY, 8 * HOUR],
  [7 * DAY, DAY],
  [30 * DAY, 5 * DAY],
  [90 * DAY, 15 * DAY],
] as const

const LONGEST = [360 * DAY, 60 * DAY] as const

/** What can be chosen, by its name in the address; `fit` reaches over nine tenths of what is foretold. */
export const SPANS = { fit: "Most of what is foretold", "1h": "1 hour", "6h": "6 hours", "1d": "1 day", "7d": "7 days" }

export type Span = keyof typeof SPANS

const AHEAD: Record<Exclude<Span, "fit">, number> = { "1h": HOUR, "6h": 6 * HOUR, "1d": DAY, "7d": 7 * DAY }

/** How much of what is past is shown, as a share of what is ahead. */
const PAST = 1 / 12

export interface Axis {
  now_ms: number
  from_ms: number
  to_ms: number
  tick_ms: number
}

export function isSpan(name: string | null): name is Span {
  return name !== null && Object.hasOwn(SPANS, name)
}

/** The axis at `now_ms` for a chosen span; to fit, the shortest that has most of `times_ms` in it. */
export function axisOf(span: Span, now_ms: number, times_ms: readonly number[]): Axis {
  const ahead_ms = span === "fit" ? mostOf(times_ms) - now_ms : AHEAD[span]
  const [reach_ms, tick_ms] = REACHES.find(([reach]) => reach >= ahead_ms) ?? LONGEST
  return { now_ms, from_ms: now_ms - reach_ms * PAST, to_ms: now_ms + reach_ms, tick_ms }
}

/** By when nine tenths have come: one run of weeks would leave everything else as thin as a line. */
function mostOf(times_ms: readonly number[]): number {
  const ordered = [...times_ms].sort((one, other) => one - other)
  return ordered[Math.ceil(ordered.length * 0.9) - 1] ?? Number.NEGATIVE_INFINITY
}

/** Where a time lies on an axis; beyond its ends below 0 or above 1. */
export function shareOf(axis: Axis, time_ms: number): number {
  return (time_ms - axis.from_ms) / (axis.to_ms - axis.from_ms)
}

interface Tick {
  share: number
  /** How far it is from now. */
  ahead_ms: number
}

/** Ticks are so far from now, and not at round hours: what one asks of a plan is how long it takes. */
export function ticksOf(axis: Axis): Tick[] {
  const ticks: Tick[] = []
  for (let ahead_ms = 0; axis.now_ms + ahead_ms < axis.to_ms; ahead_ms += axis.tick_ms) {
    ticks.push({ ahead_ms, share: shareOf(axis, axis.now_ms + ahead_ms) })
  }
  return ticks
}

/** A bar's place on an axis in percent, cut where the axis ends; null where none of it is to be seen. */
export interface Placed {
  left: number
  width: number
  /** It began before the axis does, or goes on after it. */
  isCutLeft: boolean
  isCutRight: boolean
}

/** Place a bar; `to_ms` is null where its end is not known: then it reaches to the end of the axis. */
export function place(axis: Axis, from_ms: number, to_ms: number | null): Placed | null {
  const begin = shareOf(axis, from_ms)
  const end = to_ms === null ? 1 : shareOf(axis, Math.max(to_ms, from_ms))
  if (begin >= 1 || end < 0) return null
  const left = Math.max(begin, 0)
  const right = Math.min(end, 1)
  return { left: left * 100, width: (right - left) * 100, isCutLeft: begin < 0, isCutRight: end > 1 }
}

/** The series of one metric of one job, by columns, ascending by step: for each step the value of the newest attempt. */
import type { Metric } from "../api/types"

/** What a value was that is not finite. */
export type Kind = Metric["kind"]

export interface Curve {
  readonly steps: readonly number[]
  readonly epochs: readonly number[]
  readonly attempts: readonly number[]
  /** Milliseconds since the epoch. */
  readonly times: readonly number[]
  /** Null where it is not finite; `kinds` has what it was. */
  readonly values: readonly (number | null)[]
  readonly kinds: readonly Kind[]
}

export const EMPTY: Curve = { steps: [], epochs: [], attempts: [], times: [], values: [], kinds: [] }

/** Return the series of a metric's values, whatever their order. */
export function curveOf(items: readonly Metric[]): Curve {
  const columns = new Columns()
  for (const item of items.toSorted((one, other) => one.step - other.step || one.attempt - other.attempt)) {
    columns.add(item)
  }
  return columns
}

/** Return all points of both; of one step the newer attempt's, and of one attempt that of `other`. */
export function united(curve: Curve, other: Curve): Curve {
  if (other.steps.length === 0) return curve
  if (curve.steps.length === 0) return other
  const columns = new Columns()
  let here = 0
  other.steps.forEach((step, index) => {
    for (; here < curve.steps.length && (curve.steps[here] ?? 0) < step; here += 1) columns.copy(curve, here)
    if (here === curve.steps.length || curve.steps[here] !== step) columns.copy(other, index)
    else {
      const isNewer = (other.attempts[index] ?? 0) >= (curve.attempts[here] ?? 0)
      columns.copy(isNewer ? other : curve, isNewer ? index : here)
      here += 1
    }
  })
  for (; here < curve.steps.length; here += 1) columns.copy(curve, here)
  return columns
}

/**
 * Return at most about `most` points, as the API thins: of each stretch of steps the lowest, the highest and the first that
 * is not finite, besides the first and the last of all. What is kept are real values.
 */
export function thinned(curve: Curve, most: number): Curve {
  const many = curve.steps.length
  if (many <= most) return curve
  const first = curve.steps[0] ?? 0
  const span = (curve.steps[many - 1] ?? 0) - first + 1
  const stretches = Math.max(1, Math.floor((most - 2) / 3))
  const columns = new Columns()
  for (let begin = 0; begin < many;) {
    const stretch = stretchOf(curve.steps[begin] ?? 0)
    let end = begin
    const kept = new Set<number>()
    let low = -1
    let high = -1
    let gap = -1
    for (; end < many && stretchOf(curve.steps[end] ?? 0) === stretch; end += 1) {
      const value = curve.values[end] ?? null
      if (value === null) gap = gap < 0 ? end : gap
      else {
        if (low < 0 || value < (curve.values[low] ?? 0)) low = end
        if (high < 0 || value > (curve.values[high] ?? 0)) high = end
      }
    }
    for (const index of [low, high, gap]) if (index >= 0) kept.add(index)
    if (begin === 0) kept.add(0)
    if (end === many) kept.add(many - 1)
    for (const index of [...kept].toSorted((one, other) => one - other)) columns.copy(curve, index)
    begin = end
  }
  return columns

  function stretchOf(step: number): number {
    return Math.floor(((step - first) / span) * stretches)
  }
}

interface End {
  /** Step, or place on an axis. */
  at: number
  value: number
}

/** What a series comes to. */
interface Extremes {
  last: { at: number; value: number | null; kind: Kind } | null
  lowest: End | null
  highest: End | null
  /** Points that are not finite. */
  gaps: number
}

/** Thinning keeps lowest and highest, so these are those of all values. `at` ascends, or its last is the last nevertheless. */
export function extremes(
  at: readonly number[],
  values: readonly (number | null)[],
  kinds: readonly Kind[] = [],
): Extremes {
  let lowest: End | null = null
  let highest: End | null = null
  let gaps = 0
  for (const [index, value] of values.entries()) {
    const here = at[index] ?? 0
    if (value === null) {
      gaps += 1
      continue
    }
    if (lowest === null || value < lowest.value) lowest = { at: here, value }
    if (highest === null || value > highest.value) highest = { at: here, value }
  }
  const end = values.length - 1
  const last = end < 0 ? null : { at: at[end] ?? 0, value: values[end] ?? null, kind: kinds[end] ?? null }
  return { last, lowest, highest, gaps }
}

class Columns implements Curve {
  readonly steps: number[] = []
  readonly epochs: number[] = []
  readonly attempts: number[] = []
  readonly times: number[] = []
  readonly values: (number | null)[] = []
  readonly kinds: Kind[] = []

  /** Add an item behind; one of the same step, of an older attempt, gives way to it. */
  add(item: Metric): void {
    if (this.steps.at(-1) === item.step) this.#pop()
    this.steps.push(item.step)
    this.epochs.push(item.epoch)
    this.attempts.push(item.attempt)
    this.times.push(Date.parse(item.at))
    this.values.push(item.value)
    this.kinds.push(item.kind)
  }

  copy(curve: Curve, index: number): void {
    this.steps.push(curve.steps[index] ?? 0)
    this.epochs.push(curve.epochs[index] ?? 0)
    this.attempts.push(curve.attempts[index] ?? 0)
    this.times.push(curve.times[index] ?? 0)
    this.values.push(curve.values[index] ?? null)
    this.kinds.push(curve.kinds[index] ?? null)
  }

  #pop(): void {
    this.steps.pop()
    this.epochs.pop()
    this.attempts.pop()
    this.times.pop()
    this.values.pop()
    this.kinds.pop()
  }
}

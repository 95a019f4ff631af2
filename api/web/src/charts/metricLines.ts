/** Curves of jobs as lines on an axis; what has not changed stays the same object, so that it is not drawn anew. */
import { positions, type Axis, type Origin } from "./axis"
import type { Curve } from "./curve"
import type { Line } from "./lines"

interface Placed {
  axis: Axis
  startedAt: number | null
  stepsPerEpoch: number | null
  at: readonly number[]
}

const placed = new WeakMap<Curve, Placed>()

export function lineOf(curve: Curve, axis: Axis, origin: Origin, shown: Pick<Line, "id" | "label" | "inkIndex">): Line {
  const { startedAt, stepsPerEpoch } = origin
  let kept = placed.get(curve)
  if (kept?.axis !== axis || kept.startedAt !== startedAt || kept.stepsPerEpoch !== stepsPerEpoch) {
    kept = { axis, startedAt, stepsPerEpoch, at: positions(curve, axis, origin) }
    placed.set(curve, kept)
  }
  return { ...shown, at: kept.at, values: curve.values, kinds: curve.kinds }
}

/** Where on the axis each attempt of a job went on. */
import type { Attempt } from "../../api/types"
import type { Axis, Origin } from "../../charts/axis"
import type { Mark } from "../../charts/marks"
import { count } from "../../format/numbers"

/** Return a mark for each attempt after the first, and for a first one that continued a checkpoint. */
export function marksOf(attempts: readonly Attempt[], axis: Axis, origin: Origin): Mark[] {
  return attempts.flatMap((attempt) => {
    const { number, resumed_step: resumed } = attempt
    const x = placeOf(attempt, axis, origin)
    if (x === null || (number === 1 && resumed === null)) return []
    const how = resumed === null ? "began anew" : `went on from step ${count(resumed)}`
    return [{ x, label: `attempt ${number}`, title: `attempt ${number} ${how}` }]
  })
}

/** Null where it has not begun, or where the axis cannot tell. */
function placeOf({ resumed_step: resumed, started_at: started }: Attempt, axis: Axis, origin: Origin): number | null {
  if (started === null) return null
  switch (axis) {
    case "step":
      return resumed ?? 0
    case "epoch":
      return origin.stepsPerEpoch ? (resumed ?? 0) / origin.stepsPerEpoch : null
    case "elapsed":
      return origin.startedAt === null ? null : (Date.parse(started) - origin.startedAt) / 1000
    case "clock":
      return Date.parse(started) / 1000
  }
}

/** In which state a job was, and for how long, by its events. */
import { isFinal } from "../../api/states"
import type { JobEvent, State } from "../../api/types"
import { secondsBetween } from "../../format/times"

/** One state and how long it lasted; the last one lasts until now, or is where the job has ended. */
interface Stretch {
  /** Of the event with which it begins. */
  id: number
  state: State
  from: string
  /** Null for the one that lasts. */
  to: string | null
}

/** `events` in the order in which they happened; the end of a job takes no time, unless it was queued again later. */
export function stretchesOf(events: readonly JobEvent[]): Stretch[] {
  const moves = events.filter((event): event is JobEvent & { to_state: State } => event.to_state !== null)
  return moves
    .map(({ id, to_state, at }, index) => ({
      id,
      state: to_state,
      from: at,
      to: moves[index + 1]?.at ?? null,
    }))
    .filter(({ state, to }) => to !== null || !isFinal(state))
}

/** Seconds in each state, in the order in which each was first entered. */
export function secondsByState(stretches: readonly Stretch[], now: number): [State, number][] {
  const seconds = new Map<State, number>()
  for (const { state, from, to } of stretches) {
    seconds.set(state, (seconds.get(state) ?? 0) + Math.max(0, secondsBetween(from, to ?? now)))
  }
  return [...seconds]
}

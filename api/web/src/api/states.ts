/** The states of a job, and which of them are its end. */
import type { Job, State } from "./types"

/** All of them, in the order in which a job comes to them. */
export const STATES: readonly State[] = ["queued", "starting", "running", "paused", "succeeded", "failed", "cancelled"]

const FINAL: ReadonlySet<State> = new Set<State>(["succeeded", "failed", "cancelled"])

export function isFinal(state: State): boolean {
  return FINAL.has(state)
}

export function isOver(job: Pick<Job, "state">): boolean {
  return isFinal(job.state)
}

/** The state that a job comes to by what it is told, if nothing else ends it before. */
export function headsFor({ state, intent }: Pick<Job, "state" | "intent">): State {
  if (isFinal(state) || intent === "run") return state
  return intent === "cancel" ? "cancelled" : "paused"
}

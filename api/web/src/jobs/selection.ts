/** Which jobs are selected after a click, and after something was done with them. */
import { headsFor } from "../api/states"
import type { Job, State } from "../api/types"

export function toggled(selected: ReadonlySet<number>, id: number): Set<number> {
  const after = new Set(selected)
  if (!after.delete(id)) after.add(id)
  return after
}

/** The selection with all jobs of a list from one to another, both included, whichever comes first. */
export function between(
  selected: ReadonlySet<number>,
  jobs: readonly Pick<Job, "id">[],
  from: number,
  to: number,
): Set<number> {
  const ids = jobs.map(({ id }) => id)
  const places = [ids.indexOf(from), ids.indexOf(to)]
  const isThere = !places.includes(-1)
  return new Set([...selected, ...(isThere ? ids.slice(Math.min(...places), Math.max(...places) + 1) : [to])])
}

/** The selection without the jobs that leave a list of these states, now or once they come to what they were told. */
export function withoutLeaving(
  selected: ReadonlySet<number>,
  done: readonly Pick<Job, "id" | "state" | "intent">[],
  states: readonly State[],
): Set<number> {
  const leaving = new Set(done.filter((job) => !states.includes(headsFor(job))).map(({ id }) => id))
  return new Set([...selected].filter((id) => states.length === 0 || !leaving.has(id)))
}

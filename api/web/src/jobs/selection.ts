/** Which jobs are selected after a click. */
import type { Job } from "../api/types"

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

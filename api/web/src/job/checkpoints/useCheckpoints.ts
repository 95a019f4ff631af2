/** The checkpoints of a job, all of them, the newest first. */
import { useQuery } from "@tanstack/react-query"

import { api, data } from "../../api/client"
import { keys } from "../../api/queries"
import type { Checkpoint } from "../../api/types"

const PAGE = 1000

export function useCheckpoints(jobId: number, { removed }: { removed: boolean }) {
  return useQuery({
    queryKey: [...keys.checkpoints(jobId), { removed }],
    queryFn: ({ signal }) => readAll(jobId, removed, signal),
  })
}

async function readAll(jobId: number, removed: boolean, signal: AbortSignal): Promise<Checkpoint[]> {
  const path = { job_id: jobId }
  const found: Checkpoint[] = []
  let cursor: string | undefined
  do {
    const query = { sort: "-id", size: PAGE, cursor, removed } as const
    const page = await data(api.GET("/jobs/{job_id}/checkpoints", { params: { path, query }, signal }))
    found.push(...page.items)
    cursor = page.next_page ?? undefined
  } while (cursor !== undefined)
  return found
}

/** The one that the job goes on from: the furthest whose file is there, and of several the newest. */
export function lastOf(checkpoints: readonly Checkpoint[]): Checkpoint | undefined {
  let last: Checkpoint | undefined
  for (const each of checkpoints) {
    if (each.removed_at !== null) continue
    if (last === undefined || each.step > last.step || (each.step === last.step && each.id > last.id)) last = each
  }
  return last
}

/** The names of all values that were measured, in the order in which they are met. */
export function valueNames(checkpoints: readonly Checkpoint[]): string[] {
  return [...new Set(checkpoints.flatMap(({ values }) => Object.keys(values)))]
}

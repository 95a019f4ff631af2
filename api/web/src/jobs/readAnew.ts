/** Reads what the event stream has told of: single jobs, or what stands at the top of their list. */
import type { QueryClient } from "@tanstack/react-query"

import { api, data } from "../api/client"
import { jobPagesKey, keepInPages, withFirstPage, type JobFilters, type JobPages } from "../api/jobPages"
import { Lanes } from "../api/lanes"
import { isPassing, ProblemError } from "../api/problems"
import { askForJobs } from "./useJobPages"

const lanes = new Lanes(4)

/** Read these jobs where they are listed; answers with those that could not be read for now. */
export async function readJobs(client: QueryClient, filters: JobFilters, ids: readonly number[]): Promise<number[]> {
  const kept = new Set(
    client.getQueryData<JobPages>(jobPagesKey(filters))?.pages.flatMap(({ items }) => items.map(({ id }) => id)),
  )
  const unread: number[] = []
  const read = async (id: number) => {
    try {
      return [await lanes.run(() => data(api.GET("/jobs/{job_id}", { params: { path: { job_id: id } } })))]
    } catch (error) {
      if (isRefusedForNow(error)) unread.push(id)
      return []
    }
  }
  const answers = await Promise.all(ids.filter((id) => kept.has(id)).map(read))
  keepInPages(client, new Map(answers.flat().map((job) => [job.id, () => job])))
  // One that is not in the list may have come to it by its state.
  const others = filters.state ? ids.filter((id) => !kept.has(id)) : []
  if (others.length > 0 && !(await readFirst(client, filters))) unread.push(...others)
  return unread
}

/**
 * Read what stands at the top of the list, where new jobs are by the order of their numbers; else all that is shown.
 * Answers whether it could be read.
 */
export async function readFirst(client: QueryClient, filters: JobFilters): Promise<boolean> {
  const queryKey = jobPagesKey(filters)
  const isNewestFirst = filters.sort === "-id" || filters.sort === "-created_at"
  try {
    const fresh = isNewestFirst ? await askForJobs(filters, undefined) : null
    const kept = client.getQueryData<JobPages>(queryKey)
    const pages = fresh && kept ? withFirstPage(kept, fresh) : null
    if (pages === null) await client.invalidateQueries({ queryKey })
    else client.setQueryData<JobPages>(queryKey, pages)
    return true
  } catch (error) {
    return !isRefusedForNow(error)
  }
}

/** False where the service says no for good: the list tells that, and news are no second place for it. */
function isRefusedForNow(error: unknown): boolean {
  if (isPassing(error)) return true
  if (error instanceof ProblemError) return false
  throw error
}

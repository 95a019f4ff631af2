/** The jobs that a view shows, loaded page by page as one scrolls, and anew only as far as one has come. */
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query"
import { useEffect, useMemo, useState } from "react"

import { api, data } from "../api/client"
import { jobPagesKey, type JobFilters, type JobPage } from "../api/jobPages"
import type { Job } from "../api/types"

/** 400 kB of JSON, and 40 ms of the service. */
const PAGE_SIZE = 200
/** So many rows before the end of what is loaded the next page is asked for. */
const AHEAD = 100

export function askForJobs(filters: JobFilters, cursor: string | undefined, signal?: AbortSignal): Promise<JobPage> {
  return data(api.GET("/jobs", { params: { query: { ...filters, cursor, size: PAGE_SIZE } }, signal }))
}

/** How far a person has scrolled: what is below that is not worth a request when all is read anew. */
class Reach {
  #last = 0

  get last(): number {
    return this.#last
  }

  come(last: number): void {
    this.#last = last
  }
}

export function useJobPages(filters: JobFilters) {
  const [reach] = useState(() => new Reach())
  const query = useInfiniteQuery({
    queryKey: jobPagesKey(filters),
    queryFn: ({ pageParam, signal }) => askForJobs(filters, pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last, all) => (rowsOf(all) - AHEAD <= reach.last ? (last.next_page ?? undefined) : undefined),
    placeholderData: keepPreviousData,
    // A list of ten thousand jobs is not compared in depth for each of its jobs' news.
    structuralSharing: false,
    // The event stream tells what changes, and a break of it has all read anew.
    refetchOnWindowFocus: false,
  })
  const { data: pages, fetchNextPage, isFetchingNextPage } = query
  const jobs = useMemo(() => uniqueJobs(pages?.pages ?? []), [pages])
  const hasMore = Boolean(pages?.pages.at(-1)?.next_page)

  // Where all that was loaded has left the list, no row is on the screen that would have more be loaded.
  const isStarved = jobs.length === 0 && hasMore && !query.isFetching && !query.isError
  useEffect(() => {
    if (isStarved) void fetchNextPage()
  }, [isStarved, fetchNextPage])

  /** Tell which rows are on the screen, so that what comes next is there in time. */
  const onReach = (last: number) => {
    reach.come(last)
    if (hasMore && !isFetchingNextPage && last >= jobs.length - AHEAD) void fetchNextPage({ cancelRefetch: false })
  }
  return { ...query, jobs, hasMore, onReach }
}

function rowsOf(pages: readonly JobPage[]): number {
  return pages.reduce((rows, { items }) => rows + items.length, 0)
}

/** All jobs of the pages; one whose place in the order has changed between two requests is shown once. */
function uniqueJobs(pages: readonly JobPage[]): Job[] {
  const byId = new Map<number, Job>()
  for (const { items } of pages) {
    for (const job of items) if (!byId.has(job.id)) byId.set(job.id, job)
  }
  return [...byId.values()]
}

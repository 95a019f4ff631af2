/** The events of a job, the newest first: live at the top, and older ones as they are asked for. */
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query"
import { useState } from "react"

import { api, data } from "../../api/client"
import { keys } from "../../api/queries"
import type { JobEvent } from "../../api/types"

const PAGE = 100
const LARGEST_PAGE = 1000

/**
 * Once older ones are shown, the oldest event shown so far divides what is asked for: what is above it is read anew
 * with each event that comes, and what is below it never changes. For other `kinds`, use it in a component of another
 * key.
 */
export function useEvents(jobId: number, kinds: readonly string[]) {
  const [divide, setDivide] = useState<number | null>(null)
  const newest = useQuery({
    queryKey: [...keys.events(jobId), { kinds, divide }],
    queryFn: ({ signal }) =>
      divide === null
        ? read(jobId, { kind: [...kinds], sort: "-id", limit: PAGE }, signal)
        : readFrom(jobId, kinds, divide, signal),
    placeholderData: keepPreviousData,
  })
  const older = useInfiniteQuery({
    queryKey: ["events-before", jobId, { kinds, divide }],
    enabled: divide !== null,
    staleTime: Number.POSITIVE_INFINITY,
    initialPageParam: divide,
    queryFn: ({ pageParam, signal }) =>
      read(jobId, { kind: [...kinds], sort: "-id", limit: PAGE, before: pageParam ?? undefined }, signal),
    getNextPageParam: (page) => (page.length < PAGE ? undefined : page.at(-1)?.id),
  })
  const showOlder = () => {
    if (divide !== null) void older.fetchNextPage()
    else setDivide(newest.data?.at(-1)?.id ?? null)
  }
  return {
    events: newest.data && [...newest.data, ...(older.data?.pages.flat() ?? [])],
    error: newest.error ?? older.error,
    retry: () => void (newest.error ? newest.refetch() : older.refetch()),
    hasOlder: divide === null ? newest.data?.length === PAGE : older.hasNextPage,
    isReadingOlder: older.isFetching,
    showOlder,
  }
}

interface EventQuery {
  kind: string[]
  limit: number
  sort?: "-id"
  after?: number
  before?: number
}

async function read(jobId: number, query: EventQuery, signal: AbortSignal): Promise<JobEvent[]> {
  return (await data(api.GET("/jobs/{job_id}/events", { params: { path: { job_id: jobId }, query }, signal }))).items
}

/** All from this event on, the newest first. */
async function readFrom(jobId: number, kinds: readonly string[], id: number, signal: AbortSignal): Promise<JobEvent[]> {
  const found: JobEvent[] = []
  for (;;) {
    const after = found.at(-1)?.id ?? id - 1
    const page = await read(jobId, { kind: [...kinds], limit: LARGEST_PAGE, after }, signal)
    found.push(...page)
    if (page.length < LARGEST_PAGE) return found.reverse()
  }
}

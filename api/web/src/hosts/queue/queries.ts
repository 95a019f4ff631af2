/** What the queue asks of the API: who waits, and who has used how much. */
import { queryOptions } from "@tanstack/react-query"

import { api, data } from "../../api/client"
import { planKey, POLL_MS } from "../runningJobs"
import { hasFirst, inLine, MOST_SHOWN, WAITING_FIELDS, type WaitingJob } from "./line"

const PAGE_SIZE = 500

/** Pages that are read in search of the first of the line: with priorities they may be anywhere. */
const MOST_PAGES = 10

export interface Line {
  /** The first that wait, in order. */
  first: WaitingJob[]
  /** How many more there are; at least so many where `isCounted` is false. */
  more: number
  isCounted: boolean
}

export function lineQuery() {
  return queryOptions({
    queryKey: [...planKey, "waiting"],
    queryFn: ({ signal }) => readLine(signal),
    refetchInterval: POLL_MS,
  })
}

async function readLine(signal: AbortSignal): Promise<Line> {
  const found: WaitingJob[] = []
  let cursor: string | undefined
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const query = {
      state: ["queued" as const],
      // Of the same priority, the oldest come first.
      sort: "id" as const,
      size: PAGE_SIZE,
      fields: WAITING_FIELDS.join(","),
      cursor,
    }
    const answer = await data(api.GET("/jobs", { params: { query }, signal }))
    found.push(...answer.items)
    cursor = answer.next_page ?? undefined
    if (cursor === undefined || hasFirst(found, MOST_SHOWN)) break
  }
  const line = inLine(found)
  return {
    first: line.slice(0, MOST_SHOWN),
    more: Math.max(line.length - MOST_SHOWN, 0),
    isCounted: cursor === undefined,
  }
}

export function quotasQuery() {
  return queryOptions({
    queryKey: ["quotas"],
    queryFn: ({ signal }) => data(api.GET("/quotas", { signal })),
    refetchInterval: 3 * POLL_MS,
  })
}

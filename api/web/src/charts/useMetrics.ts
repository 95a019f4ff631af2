/** The series of the jobs that a page shows, kept up to date for as long as it shows them. */
import { useEffect, useEffectEvent, useState, useSyncExternalStore } from "react"

import { api, data } from "../api/client"
import { isPassing } from "../api/problems"
import { isOver } from "../api/states"
import type { Job } from "../api/types"
import { useFeed } from "../live/useFeed"
import { MetricStore, pointsOf, type Snapshot } from "./metricStore"

/** A stream that has not begun by then, as with too many tabs, is not waited for before anything is shown. */
const STREAM_MS = 1_500

/** Return what there is of `jobs`; no stream is held for those that have ended. */
export function useMetrics(jobs: readonly Pick<Job, "id" | "state">[]): {
  snapshot: Snapshot
  retry: (job: number) => void
} {
  const [store] = useState(() => new MetricStore(read))
  const snapshot = useSyncExternalStore(store.subscribe, store.get)
  const live = inOrder(jobs.filter((job) => !isOver(job)))
  const ended = inOrder(jobs.filter(isOver))
  useFeed({
    topics: ["metrics"],
    jobs: live,
    onNews: ({ topic, data: news }) => {
      if (topic === "metrics") store.add(news.job_id, news.items)
    },
    onShow: () => {
      for (const job of live) void store.load(job)
    },
  })
  const listed = useEffectEvent(() => ({ live, ended }))
  const liveKey = live.join()
  const endedKey = ended.join()
  useEffect(() => {
    const timer = setTimeout(() => {
      for (const job of listed().live) store.loadIfUnknown(job)
    }, STREAM_MS)
    return () => clearTimeout(timer)
  }, [store, liveKey])
  useEffect(() => store.loadEnded(listed().ended), [store, endedKey])
  useEffect(() => () => store.stop(), [store])
  return { snapshot, retry: (job) => void store.load(job) }
}

function inOrder(jobs: readonly Pick<Job, "id">[]): number[] {
  return jobs.map(({ id }) => id).toSorted((one, other) => one - other)
}

/** Characters of names that an address has room for. */
const MOST_NAMED = 2_000

const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 5_000

/** A service that is away comes back, and the curves with it, as with all else that the page asks for. */
async function read(job: number, signal: AbortSignal) {
  const path = { job_id: job }
  for (let wait_ms = FIRST_WAIT_MS; ; wait_ms = Math.min(2 * wait_ms, LONGEST_WAIT_MS)) {
    try {
      const known = await data(api.GET("/jobs/{job_id}/metrics/names", { params: { path }, signal }))
      const names = known.items.map(({ name }) => name)
      // Named, they are not looked for a second time; one that comes meanwhile is told of by the stream.
      const name = names.join("").length <= MOST_NAMED ? names : []
      const params = { path, query: { points: pointsOf(names.length), name } }
      return (await data(api.GET("/jobs/{job_id}/metrics", { params, signal }))).items
    } catch (error) {
      if (signal.aborted || !isPassing(error)) throw error
      await new Promise((resolve) => setTimeout(resolve, wait_ms))
      signal.throwIfAborted()
    }
  }
}

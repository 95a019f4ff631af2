/** The series of the jobs that a page shows, kept up to date for as long as it shows them. */
import { useEffect, useState, useSyncExternalStore } from "react"

import { api, data } from "../api/client"
import { isPassing } from "../api/problems"
import type { Job } from "../api/types"
import { useFeed } from "../live/useFeed"
import { MetricStore, POINTS, type Snapshot } from "./metricStore"

/** Return what there is of `jobs`, and the component that keeps it so, which the page has to show. */
export function useMetrics(jobs: readonly Pick<Job, "id" | "state">[]): {
  snapshot: Snapshot
  follow: React.ReactNode
  retry: (job: number) => void
} {
  const [store] = useState(() => new MetricStore(read))
  const snapshot = useSyncExternalStore(store.subscribe, store.get)
  const live = jobs.filter(({ state }) => !ENDED.has(state)).map(({ id }) => id)
  const ended = jobs.filter(({ state }) => ENDED.has(state))
  useEffect(() => () => store.stop(), [store])
  return {
    snapshot,
    retry: (job) => void store.load(job),
    follow: (
      <>
        {live.length > 0 && <Follow store={store} jobs={live.toSorted((one, other) => one - other)} />}
        {ended.map(({ id, state }) => (
          // Read once more when it ends: the stream is left then, and may have had more to tell.
          <ReadOnce key={`${id} ${state}`} store={store} job={id} />
        ))}
      </>
    ),
  }
}

/** A stream that has not begun by then, as with too many tabs, is not waited for before anything is shown. */
const STREAM_MS = 1_500

/** No stream is held for these: a browser has only six connections to one service. */
const ENDED: ReadonlySet<string> = new Set<Job["state"]>(["succeeded", "failed", "cancelled"])

function Follow({ store, jobs }: { store: MetricStore; jobs: readonly number[] }) {
  const listed = jobs.join(",")
  useFeed({
    topics: ["metrics"],
    jobs,
    onNews: ({ topic, data: news }) => {
      if (topic === "metrics") store.add(news.job_id, news.items)
    },
    onShow: () => {
      for (const job of jobs) void store.load(job)
    },
  })
  useEffect(() => {
    const timer = setTimeout(() => {
      for (const job of listed.split(",")) store.loadIfUnknown(Number(job))
    }, STREAM_MS)
    return () => clearTimeout(timer)
  }, [store, listed])
  return null
}

function ReadOnce({ store, job }: { store: MetricStore; job: number }) {
  useEffect(() => void store.load(job), [store, job])
  return null
}

const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 5_000

/** A service that is away comes back, and the curves with it, as with all else that the page asks for. */
async function read(job: number, signal: AbortSignal) {
  const params = { path: { job_id: job }, query: { points: POINTS } }
  for (let wait_ms = FIRST_WAIT_MS; ; wait_ms = Math.min(2 * wait_ms, LONGEST_WAIT_MS)) {
    try {
      return (await data(api.GET("/jobs/{job_id}/metrics", { params, signal }))).items
    } catch (error) {
      if (signal.aborted || !isPassing(error)) throw error
      await new Promise((resolve) => setTimeout(resolve, wait_ms))
      signal.throwIfAborted()
    }
  }
}

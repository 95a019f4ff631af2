/** Keeps the list of jobs as it is now: by the event stream, and for what no event tells by asking now and then. */
import { useQueryClient, type QueryClient } from "@tanstack/react-query"
import { useEffect, useEffectEvent, useRef } from "react"

import { api, data } from "../api/client"
import { jobPagesKey, keepInPages, withFirstPage, type JobFilters, type JobPages } from "../api/jobPages"
import { Lanes } from "../api/lanes"
import { isPassing, ProblemError } from "../api/problems"
import { keys } from "../api/queries"
import type { Job, Progress } from "../api/types"
import { useNews } from "../live/LiveProvider"
import { GatheredNews } from "./jobNews"
import { goOn } from "./trails"
import { askForJobs } from "./useJobPages"

/** Position, reason and predicted start of a queued job change with every plan, and no event tells it. */
const QUEUED_MS = 15_000

const lanes = new Lanes(4)

/** `queuedOnScreen` has the ids of the queued jobs that are on the screen now. */
export function useLiveJobs(filters: JobFilters, queuedOnScreen: () => number[]): void {
  const client = useQueryClient()
  const gathered = useRef<GatheredNews>(null)
  const listed = useEffectEvent(() => filters)
  const queued = useEffectEvent(queuedOnScreen)

  useEffect(() => {
    const news = new GatheredNews({
      isReading: () => client.isFetching({ queryKey: keys.jobs }) > 0,
      onProgress: (progress) => keepProgress(client, progress),
      onChanged: (ids) => passOver(readJobs(client, listed(), ids)),
      onCome: () => passOver(readFirst(client, listed())),
      onMuch: () => client.invalidateQueries({ queryKey: keys.jobs }),
    })
    gathered.current = news
    const timer = setInterval(() => {
      if (!document.hidden) news.ask(queued())
    }, QUEUED_MS)
    return () => {
      clearInterval(timer)
      news.stop()
    }
  }, [client])

  useNews((news) => {
    if (news.topic === "jobs") gathered.current?.take(news.data)
  })
}

function keepProgress(client: QueryClient, progress: ReadonlyMap<number, Progress>): void {
  const changes = [...progress].map(([id, now]) => [id, (job: Job) => ({ ...job, progress: now })] as const)
  keepInPages(client, new Map(changes))
  for (const [id, now] of progress) goOn(client, id, now)
}

async function readJobs(client: QueryClient, filters: JobFilters, ids: readonly number[]): Promise<void> {
  const kept = new Set(
    client.getQueryData<JobPages>(jobPagesKey(filters))?.pages.flatMap(({ items }) => items.map(({ id }) => id)),
  )
  const asked = ids.filter((id) => kept.has(id))
  const answers = await Promise.allSettled(
    asked.map((id) => lanes.run(() => data(api.GET("/jobs/{job_id}", { params: { path: { job_id: id } } })))),
  )
  const read = answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []))
  keepInPages(client, new Map(read.map((job) => [job.id, () => job])))
  // One that is not in the list may have come to it by its state.
  if (filters.state && ids.some((id) => !kept.has(id))) await readFirst(client, filters)
}

/** Read what stands at the top of the list, where new jobs are by the order of their numbers; else all that is shown. */
async function readFirst(client: QueryClient, filters: JobFilters): Promise<void> {
  const queryKey = jobPagesKey(filters)
  const isNewestFirst = filters.sort === "-id" || filters.sort === "-created_at"
  const fresh = isNewestFirst ? await askForJobs(filters, undefined) : null
  const kept = client.getQueryData<JobPages>(queryKey)
  const pages = fresh && kept ? withFirstPage(kept, fresh) : null
  if (pages === null) await client.invalidateQueries({ queryKey })
  else client.setQueryData<JobPages>(queryKey, pages)
}

/** A service that is away, or says no, is told by the connection's badge and by the list: news are no second place for it. */
async function passOver(reading: Promise<void>): Promise<void> {
  try {
    await reading
  } catch (error) {
    if (!isPassing(error) && !(error instanceof ProblemError)) throw error
  }
}

/** Keeps the list of jobs as it is now: by the event stream, and for what no event tells by asking now and then. */
import { useQueryClient, type QueryClient } from "@tanstack/react-query"
import { useEffect, useEffectEvent, useRef } from "react"

import { keepInPages, type JobFilters } from "../api/jobPages"
import { keys } from "../api/queries"
import type { Job, Progress } from "../api/types"
import { useNews } from "../live/LiveProvider"
import { GatheredNews } from "./jobNews"
import { readFirst, readJobs } from "./readAnew"
import { dropTrails, goOn } from "./trails"

/** Position, reason and predicted start of a queued job change with every plan, and no event tells it. */
const QUEUED_MS = 15_000

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
      onChanged: (ids) => readJobs(client, listed(), ids),
      onCome: () => readFirst(client, listed()),
      onMuch: () => client.invalidateQueries({ queryKey: keys.jobs }),
    })
    gathered.current = news
    const timer = setInterval(() => {
      if (!document.hidden) news.ask(queued())
    }, QUEUED_MS)
    return () => {
      clearInterval(timer)
      news.stop()
      dropTrails(client)
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

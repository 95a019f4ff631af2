/** A feed for as long as a component shows what it tells. */
import { useEffect, useEffectEvent } from "react"

import { askFor } from "../api/client"
import type { News, TopicName } from "./events"
import { Feed } from "./feed"
import { connections } from "./connections"

export interface FeedListener {
  topics: readonly TopicName[]
  /** Only these jobs, and for none no stream at all; without it all jobs. */
  jobs?: readonly number[]
  onNews: (news: News) => void
  /** Read what is shown anew: the stream begins here, or has come back. */
  onShow: () => void
}

/** How long a hidden tab keeps its stream: a browser opens only six connections to one service, over all of its tabs. */
const HIDDEN_MS = 20_000

export function useFeed({ topics, jobs, onNews, onShow }: FeedListener): void {
  const tell = useEffectEvent(onNews)
  const show = useEffectEvent(onShow)
  const query = new URLSearchParams({ topics: topics.join(",") })
  if (jobs) query.set("jobs", jobs.join(","))
  const path = jobs?.length === 0 ? null : `/events?${query.toString()}`

  useEffect(() => {
    if (path === null) return
    const id = Symbol(path)
    const feed = new Feed({
      path,
      askFor,
      onNews: tell,
      onShow: show,
      onConnection: (connection) => connections.set(id, connection),
    })
    let hiding: ReturnType<typeof setTimeout> | undefined
    const onVisibility = () => {
      clearTimeout(hiding)
      if (document.hidden) hiding = setTimeout(() => feed.close(), HIDDEN_MS)
      else feed.open()
    }
    const retry = () => feed.retryNow()
    document.addEventListener("visibilitychange", onVisibility)
    window.addEventListener("online", retry)
    const forget = connections.onRetry(retry)
    // A tab that was opened in the background waits until somebody looks at it.
    if (!document.hidden) feed.open()
    return () => {
      clearTimeout(hiding)
      document.removeEventListener("visibilitychange", onVisibility)
      window.removeEventListener("online", retry)
      forget()
      feed.close()
      connections.delete(id)
    }
  }, [path])
}

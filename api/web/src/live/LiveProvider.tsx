/** The feed of everything that pages share: jobs, checkpoints and hosts, kept in the query cache and told to listeners. */
import { useQueryClient } from "@tanstack/react-query"
import { createContext, use, useEffect, useEffectEvent, useState, type ReactNode } from "react"

import { keys } from "../api/queries"
import type { News } from "./events"
import { useFeed } from "./useFeed"
import { StaleAnswers } from "./staleAnswers"
import { takeIn } from "./takeIn"

type Listener = (news: News) => void

/** A stream that has not begun by then, as in a hidden tab or with too many open, keeps nobody waiting. */
const STREAM_MS = 400

const Listeners = createContext<Set<Listener> | null>(null)

export function LiveProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient()
  const [listeners] = useState(() => new Set<Listener>())
  const [stale] = useState(() => new StaleAnswers(client))
  // First the stream, then what is shown (docs/streams.md): what is read after its beginning misses nothing, and is
  // read once.
  const [isShown, setIsShown] = useState(false)
  useFeed({
    topics: ["jobs", "checkpoints", "hosts"],
    onNews: (news) => {
      takeIn(client, stale, news)
      for (const listener of listeners) listener(news)
    },
    onShow: () => {
      setIsShown(true)
      // Whatever is on the screen may have changed unseen; what is not, is read anew when it is shown.
      if (isShown) void client.invalidateQueries({ queryKey: keys.live })
    },
  })
  useEffect(() => {
    const timer = setTimeout(() => setIsShown(true), STREAM_MS)
    return () => clearTimeout(timer)
  }, [])
  return <Listeners value={listeners}>{isShown && children}</Listeners>
}

/** Be told of jobs, checkpoints and hosts while the component is shown. */
export function useNews(onNews: Listener): void {
  const listeners = use(Listeners)
  const tell = useEffectEvent(onNews)
  useEffect(() => {
    if (listeners === null) throw new Error("useNews is for what is inside LiveProvider")
    const listener: Listener = (news) => tell(news)
    listeners.add(listener)
    return () => {
      listeners.delete(listener)
    }
  }, [listeners])
}

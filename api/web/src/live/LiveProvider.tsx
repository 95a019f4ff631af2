/** The feed of everything that pages share: jobs, checkpoints and hosts, kept in the query cache and told to listeners. */
import { useQueryClient } from "@tanstack/react-query"
import { createContext, use, useEffect, useEffectEvent, useState, type ReactNode } from "react"

import { keys } from "../api/queries"
import type { News } from "./events"
import { useFeed } from "./useFeed"
import { StaleAnswers } from "./staleAnswers"
import { takeIn } from "./takeIn"

type Listener = (news: News) => void

const Listeners = createContext<Set<Listener> | null>(null)

export function LiveProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient()
  const [listeners] = useState(() => new Set<Listener>())
  const [stale] = useState(() => new StaleAnswers(client))
  useFeed({
    topics: ["jobs", "checkpoints", "hosts"],
    onNews: (news) => {
      takeIn(client, stale, news)
      for (const listener of listeners) listener(news)
    },
    // Whatever is on the screen may have changed unseen; what is not, is read anew when it is shown.
    onShow: () => void client.invalidateQueries({ queryKey: keys.live }),
  })
  return <Listeners value={listeners}>{children}</Listeners>
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

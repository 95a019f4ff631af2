/** Has the plan read anew soon after somebody came, went or changed: at most every two seconds, however many did. */
import { useQueryClient } from "@tanstack/react-query"
import { useEffect, useRef } from "react"

import { useNews } from "../live/LiveProvider"
import { planKey } from "./runningJobs"

/** As long as the service takes to plan again at the most. */
const WAIT_MS = 2_000

export function usePlanNews(): void {
  const client = useQueryClient()
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  useNews((news) => {
    const isOfPlan =
      news.topic === "hosts" ||
      (news.topic === "jobs" && news.data.event !== null && PLANNED_ANEW.has(news.data.event.kind))
    if (!isOfPlan || timer.current !== undefined) return
    timer.current = setTimeout(() => {
      timer.current = undefined
      void client.invalidateQueries({ queryKey: planKey })
    }, WAIT_MS)
  })
}

const PLANNED_ANEW: ReadonlySet<string> = new Set(["submitted", "state", "intent", "retry", "change"])

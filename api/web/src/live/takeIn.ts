/** What news mean for the answers that are kept: patched where they say enough, read anew where not. */
import type { QueryClient } from "@tanstack/react-query"

import { keys } from "../api/queries"
import type { Job } from "../api/types"
import type { News } from "./events"
import type { StaleAnswers } from "./staleAnswers"

export function takeIn(client: QueryClient, stale: StaleAnswers, news: News): void {
  switch (news.topic) {
    case "jobs": {
      const { job_id: id, event, progress } = news.data
      if (progress) client.setQueryData<Job>(keys.job(id), (job) => job && { ...job, progress })
      // A state moves more than itself: times, failure, attempts. They are asked for, and only where they are shown.
      if (event) stale.add(keys.ofJob(id))
      // Whoever ends or begins changes what the others wait for, and what the hosts have free.
      if (event?.to_state) stale.add(keys.hosts)
      return
    }
    case "checkpoints":
      stale.add(keys.checkpoints(news.data.job_id))
      return
    case "hosts":
      stale.add(keys.hosts)
      return
    default:
      return
  }
}

/** What news mean for the answers that are kept: patched where they say enough, read anew where not. */
import type { QueryClient, QueryKey } from "@tanstack/react-query"

import { keys } from "../api/queries"
import type { Job } from "../api/types"
import type { News } from "./events"

export class TakingIn {
  readonly #client: QueryClient
  readonly #stale = new Map<string, QueryKey>()
  #isReading = false

  constructor(client: QueryClient) {
    this.#client = client
  }

  take(news: News): void {
    switch (news.topic) {
      case "jobs": {
        const { job_id: id, event, progress } = news.data
        if (progress) this.#client.setQueryData<Job>(keys.job(id), (job) => job && { ...job, progress })
        // A state moves more than itself: times, failure, attempts. They are asked for, and only where they are shown.
        if (event) this.#readAnew(keys.ofJob(id))
        // Whoever ends or begins changes what the others wait for, and what the hosts have free.
        if (event?.to_state) this.#readAnew(keys.hosts)
        return
      }
      case "checkpoints":
        this.#readAnew(keys.checkpoints(news.data.job_id))
        return
      case "hosts":
        this.#readAnew(keys.hosts)
        return
      default:
        return
    }
  }

  #readAnew(key: QueryKey): void {
    this.#stale.set(JSON.stringify(key), key)
    if (!this.#isReading) void this.#read()
  }

  /**
   * One round after the other: what becomes stale while it is read is read in the next. News that come faster than
   * answers would else break off every reading, and nothing would ever be shown.
   */
  async #read(): Promise<void> {
    this.#isReading = true
    while (this.#stale.size > 0) {
      const round = [...this.#stale.values()]
      this.#stale.clear()
      await Promise.allSettled(round.map((queryKey) => this.#client.invalidateQueries({ queryKey })))
    }
    this.#isReading = false
  }
}

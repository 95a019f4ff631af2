/** Kept answers that news have made stale, read anew: each key in its own time, with one reading of it at once. */
import type { QueryClient, QueryKey } from "@tanstack/react-query"

/** How long news of one key are gathered before it is read. */
const GATHERED_MS = 250

/**
 * What becomes stale while it is read is read once more afterwards, and never broken off: news that come faster than
 * answers would else end every reading, and nothing would ever be shown.
 */
export class StaleAnswers {
  readonly #client: QueryClient
  readonly #states = new Map<string, "waiting" | "reading" | "stale again">()

  constructor(client: QueryClient) {
    this.#client = client
  }

  add(key: QueryKey): void {
    const name = JSON.stringify(key)
    const state = this.#states.get(name)
    if (state === undefined) void this.#read(name, key)
    else if (state === "reading") this.#states.set(name, "stale again")
  }

  async #read(name: string, key: QueryKey): Promise<void> {
    do {
      this.#states.set(name, "waiting")
      await new Promise((resolve) => setTimeout(resolve, GATHERED_MS))
      this.#states.set(name, "reading")
      await this.#client.invalidateQueries({ queryKey: key })
    } while (this.#states.get(name) === "stale again")
    this.#states.delete(name)
  }
}

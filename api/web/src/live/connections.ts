/** How the open feeds fare together, for the badge in the header. */
import { useSyncExternalStore } from "react"

import type { Connection } from "./feed"

type Listener = () => void

class Connections {
  readonly #states = new Map<symbol, Connection>()
  readonly #listeners = new Set<Listener>()
  readonly #retries = new Set<Listener>()

  set(feed: symbol, connection: Connection): void {
    this.#states.set(feed, connection)
    for (const listener of this.#listeners) listener()
  }

  delete(feed: symbol): void {
    this.#states.delete(feed)
    for (const listener of this.#listeners) listener()
  }

  /** The worst of all: one broken stream may hide news. */
  readonly worst = (): Connection => {
    const states = [...this.#states.values()]
    if (states.includes("broken")) return "broken"
    return states.length === 0 || states.includes("connecting") ? "connecting" : "live"
  }

  readonly subscribe = (listener: Listener): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Be told when a person asks to connect now; returns how to stop being told. */
  onRetry(listener: Listener): () => void {
    this.#retries.add(listener)
    return () => this.#retries.delete(listener)
  }

  readonly retryNow = (): void => {
    for (const retry of this.#retries) retry()
  }
}

export const connections = new Connections()

export function useConnection(): Connection {
  return useSyncExternalStore(connections.subscribe, connections.worst)
}

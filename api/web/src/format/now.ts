/** The current time, for what is shown relative to it: one timer for all of the page. */
import { useSyncExternalStore } from "react"

const STEP_MS = 1000
const listeners = new Set<() => void>()
let now = Date.now()
let timer: ReturnType<typeof setInterval> | undefined

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  if (timer === undefined) {
    // What the last listener left is of long ago.
    now = Date.now()
    timer = setInterval(() => {
      now = Date.now()
      for (const each of listeners) each()
    }, STEP_MS)
  }
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** Milliseconds since the epoch, each second anew; rounded down to `every_ms`, so that what shows minutes rests between. */
export function useNow(every_ms = STEP_MS): number {
  return useSyncExternalStore(
    subscribe,
    () => Math.floor((timer === undefined ? Date.now() : now) / every_ms) * every_ms,
  )
}

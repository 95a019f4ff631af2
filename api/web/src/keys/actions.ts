/** Everything that can be done by a key or from the palette, as long as the component that offers it is shown. */
import { useEffect, useEffectEvent, useSyncExternalStore } from "react"

export interface Action {
  /** One of its kind; what comes later under the same id takes its place. */
  id: string
  /** What it does, as the palette and the list of keys say it. */
  title: string
  section: "Go to" | "This page" | "Jobs" | "Help"
  /**
   * Keys one after another, as `KeyboardEvent.key` names them, separated by spaces: `g j`, `/`, `?`; or one with Control,
   * or a Mac's Command, which counts also while something is typed: `Control+k`.
   */
  keys?: string
  run: () => void
}

type Listener = () => void

class Actions {
  #offered: readonly Action[] = []
  readonly #listeners = new Set<Listener>()

  readonly get = (): readonly Action[] => this.#offered

  /** Offer an action; returns how to take it back. */
  offer(action: Action): () => void {
    this.#set([...this.#offered, action])
    return () => this.#set(this.#offered.filter((other) => other !== action))
  }

  readonly subscribe = (listener: Listener): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #set(offered: readonly Action[]): void {
    this.#offered = offered
    for (const listener of this.#listeners) listener()
  }
}

export const actions = new Actions()

/** The actions that are offered now, the newest of each id. */
export function useActions(): readonly Action[] {
  const offered = useSyncExternalStore(actions.subscribe, actions.get)
  return [...new Map(offered.map((action) => [action.id, action])).values()]
}

/** Offer an action while the component is shown and `enabled` holds. */
export function useAction({ id, title, section, keys, run, enabled = true }: Action & { enabled?: boolean }): void {
  const act = useEffectEvent(run)
  useEffect(() => {
    if (!enabled) return
    return actions.offer({ id, title, section, keys, run: () => act() })
  }, [id, title, section, keys, enabled])
}

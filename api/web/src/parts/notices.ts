/** Short notices of what an action came to: a small store, and no more. */

interface Notice {
  id: number
  text: string
  kind: "done" | "failed"
}

type Listener = () => void

/** How long a notice of success stays; one of a failure stays until it is closed. */
const DONE_MS = 6_000

class Notices {
  #shown: readonly Notice[] = []
  #next = 1
  readonly #listeners = new Set<Listener>()

  readonly get = (): readonly Notice[] => this.#shown

  done(text: string): void {
    const id = this.#add(text, "done")
    setTimeout(() => this.close(id), DONE_MS)
  }

  failed(text: string): void {
    this.#add(text, "failed")
  }

  close(id: number): void {
    this.#set(this.#shown.filter((notice) => notice.id !== id))
  }

  readonly subscribe = (listener: Listener): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #add(text: string, kind: Notice["kind"]): number {
    const id = this.#next++
    this.#set([...this.#shown.slice(-4), { id, text, kind }])
    return id
  }

  #set(shown: readonly Notice[]): void {
    this.#shown = shown
    for (const listener of this.#listeners) listener()
  }
}

export const notices = new Notices()

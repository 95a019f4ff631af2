/** Where the cursor of one chart is: beside React's state, as it moves with every movement of the mouse. */

/** Indices into the columns: of the place under the cursor, and of each series' point that is nearest to it. */
export interface Cursor {
  index: number
  indices: readonly (number | null)[]
}

export class Hover {
  #cursor: Cursor | null = null
  readonly #listeners = new Set<() => void>()

  readonly get = (): Cursor | null => this.#cursor

  readonly set = (cursor: Cursor | null): void => {
    if (cursor === null && this.#cursor === null) return
    this.#cursor = cursor
    for (const listener of this.#listeners) listener()
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}

/** Lets only so many requests of one kind run at once; the others wait their turn. */
export class Lanes {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(many: number) {
    this.#free = many
  }

  /** Run `task` when it is its turn; not at all where `signal` has given it up by then. */
  async run<T>(task: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#free > 0) this.#free -= 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      signal?.throwIfAborted()
      return await task()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free += 1
    }
  }
}

/** Reads pieces back in time, from an API that only reads forward: it looks a number of ids back, and reads from there. */
import type { Piece } from "./lines"

/** Returns up to `limit` pieces with ids above `after`, by id. */
type Read = (after: number, limit: number) => Promise<Piece[]>

const FEWEST = 50
const MOST = 1_000
/** Characters that an answer may have, as far as pieces so far say what the next ones weigh. */
const ANSWER_SIZE = 256 * 1024

export class Before {
  readonly #read: Read
  /** Id of the very first piece. */
  readonly #first: number
  #limit = FEWEST
  /** How many ids it looks back; between those of this job there may be any number of other jobs'. */
  #step = FEWEST

  constructor(read: Read, first: number) {
    this.#read = read
    this.#first = first
  }

  /** Whether there are pieces before the one with the id `bound`. */
  has(bound: number): boolean {
    return bound > this.#first
  }

  /** Return the next pieces before the id `bound`, oldest first, with none left out between. */
  async read(bound: number): Promise<Piece[]> {
    // So many ids back there are none; and so many back there are more than an answer holds.
    let empty = 0
    let tooMany = Number.POSITIVE_INFINITY
    while (empty < bound - this.#first) {
      const after = Math.max(this.#first - 1, bound - 1 - this.#step)
      const found = await this.#read(after, this.#limit)
      const isCut = found.length === this.#limit && (found.at(-1)?.id ?? bound) < bound - 1
      const pieces = found.filter(({ id }) => id < bound)
      if (pieces.length > 0 && !isCut) {
        this.#learn(pieces)
        return pieces
      }
      if (isCut) tooMany = Math.min(this.#step, bound - this.#first)
      else empty = this.#step
      const between = Math.floor((empty + tooMany) / 2)
      // Behind what is empty, as many ids as an answer holds are never too many.
      this.#step = isCut ? Math.max(empty + this.#limit, between) : Math.min(8 * this.#step, between)
    }
    return []
  }

  #learn(pieces: readonly Piece[]): void {
    const size = pieces.reduce((sum, { text }) => sum + text.length, 0)
    const fitting = Math.floor((ANSWER_SIZE * pieces.length) / Math.max(size, 1))
    const density = pieces.length / this.#step
    this.#limit = Math.min(MOST, Math.max(FEWEST, fitting))
    this.#step = Math.max(this.#limit, Math.floor(this.#limit / Math.max(density, 1e-6) / 2))
  }
}

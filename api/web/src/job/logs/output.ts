/** The output of a job as it is shown: read back from its end, followed from there on, and bounded in memory. */
import { asError } from "../../api/problems"
import { Before } from "./before"
import { type Line, Lines, type Piece } from "./lines"
import { Matches, type Search } from "./matches"
import { plain, settled } from "./terminal"

/** How the output is read of the API. */
export interface Source {
  /** Up to `limit` pieces with ids above `after`, by id. */
  read: (after: number, limit: number) => Promise<Piece[]>
  /** Id of the newest piece, 0 where there is none. */
  newest: () => Promise<number>
}

interface Shown {
  lines: readonly Line[]
  /** Nothing has been read so far. */
  isLoading: boolean
  isLoadingEarlier: boolean
  hasEarlier: boolean
  /** No more of the earlier lines can be loaded: there are as many as are kept. */
  isFull: boolean
  /** Characters of the longest line. */
  widest: number
  /** How many of the oldest lines were dropped. */
  dropped: number
  /** Keys of lines with what is looked for. */
  matches: readonly number[]
  error: Error | null
}

export const MOST_LINES = 200_000
/** So many go at once when there are more: to move the rest is not for each few lines. */
const DROPPED_LINES = MOST_LINES / 20
/** Earlier lines are loaded up to here: well below what drops them again when the next ones come. */
const MOST_LOADED = MOST_LINES - 2 * DROPPED_LINES
/** Fewest lines that are read back at once, where there are as many. */
const BLOCK_LINES = 1_000
/** Four times a second is as often as a person sees a difference. */
const PUBLISH_MS = 250
/** Characters that are taken in in one go, about ten thousand lines: more of them would hold the page up. */
const TAKEN_IN = 512 * 1024
/** Where more was missed than so many answers, the end is read anew. */
const CATCH_UP_ANSWERS = 20
const CATCH_UP_PIECES = 500

type Listener = () => void

export class Output {
  readonly #source: Source
  #lines = new Lines()
  #before: Before | undefined
  /** Ids of the pieces that are in `#lines`: the stream and the other answers may both bring one. */
  readonly #seen = new Set<number>()
  #newest = 0
  /** Whether the end was read; what the stream tells is put behind that. */
  #hasBegun = false
  #queue: Piece[] = []
  #isReading = false
  #reading: Promise<void> = Promise.resolve()
  #loadingBack: Promise<void> = Promise.resolve()
  #isAskedAgain = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #matches: Matches | undefined
  #looking: ReturnType<typeof setTimeout> | undefined
  #shown: Shown = {
    lines: [],
    isLoading: true,
    isLoadingEarlier: false,
    hasEarlier: false,
    isFull: false,
    widest: 0,
    dropped: 0,
    matches: [],
    error: null,
  }
  readonly #listeners = new Set<Listener>()

  constructor(source: Source) {
    this.#source = source
  }

  readonly get = (): Shown => this.#shown

  readonly subscribe = (listener: Listener): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Read the end of the output, or what has come since; pieces that come meanwhile wait for that. */
  show(): Promise<void> {
    this.#isAskedAgain = true
    if (!this.#isReading) this.#reading = this.#readEnd()
    return this.#reading
  }

  async #readEnd(): Promise<void> {
    this.#isReading = true
    let error: Error | null = null
    while (this.#isAskedAgain) {
      this.#isAskedAgain = false
      try {
        if (!this.#hasBegun || !(await this.#catchUp())) await this.#begin()
        error = null
      } catch (failed) {
        error = asError(failed)
      }
    }
    this.#isReading = false
    this.#publish({ isLoading: false, error })
    this.#flush()
  }

  /** Take in pieces that the stream tells. */
  take(pieces: readonly Piece[]): void {
    this.#queue.push(...pieces)
    if (!this.#isReading) this.#timer ??= setTimeout(() => this.#flush(), PUBLISH_MS)
  }

  /** Let no timer run any longer; what is queued is taken in when something else comes. */
  close(): void {
    clearTimeout(this.#timer)
    clearTimeout(this.#looking)
    this.#timer = undefined
    this.#looking = undefined
  }

  /** Load the block of lines before the first one. */
  async earlier(): Promise<void> {
    await this.#goBack((lines) => lines >= BLOCK_LINES)
  }

  /** Load all lines back to the piece with an id. Returns the key of the line there that has this text, if it is kept. */
  async reach(piece: number, text: string): Promise<number | undefined> {
    while (this.#isReading || this.#shown.isLoadingEarlier) await Promise.all([this.#reading, this.#loadingBack])
    await this.#goBack((_, bound) => bound <= piece)
    const wanted = plain(settled(text.replace(/\n$/, "")))
    const there = this.#lines.all.filter((line) => line.piece === piece)
    return (there.find((line) => plain(line.text) === wanted) ?? there[0])?.key
  }

  /** Look for a text in the lines from now on. */
  find(search: Search | null): void {
    this.#matches = search ? new Matches(search) : undefined
    this.#look(Number.POSITIVE_INFINITY)
    this.#publish()
  }

  /** Look for it in lines from the key `changed` on and in those before, a part at a time. */
  #look(changed: number): void {
    const isDone = this.#matches?.update(this.#lines.all, changed) ?? true
    clearTimeout(this.#looking)
    this.#looking = isDone ? undefined : setTimeout(() => this.#lookOn())
  }

  #lookOn(): void {
    const before = this.#matches?.keys
    this.#look(Number.POSITIVE_INFINITY)
    if (this.#matches?.keys !== before || this.#looking === undefined) this.#publish()
  }

  async #begin(): Promise<void> {
    const [first] = await this.#source.read(0, 1)
    this.#hasBegun ||= first === undefined
    if (!first) return
    const newest = await this.#source.newest()
    const before = new Before(this.#source.read, first.id)
    const blocks: Piece[][] = []
    await readBack(
      before,
      newest + 1,
      (lines) => lines >= BLOCK_LINES,
      (block) => blocks.unshift(block) > 0,
    )
    this.#lines = new Lines()
    this.#seen.clear()
    this.#before = before
    this.#newest = newest
    this.#hasBegun = true
    this.#matches?.update([], 0)
    this.#append(blocks.flat())
  }

  /** Returns whether it got to the end. */
  async #catchUp(): Promise<boolean> {
    for (let answer = 0; answer < CATCH_UP_ANSWERS; answer += 1) {
      const pieces = await this.#source.read(this.#newest, CATCH_UP_PIECES)
      this.#append(pieces)
      if (pieces.length < CATCH_UP_PIECES) return true
    }
    return false
  }

  #goBack(isEnough: (lines: number, bound: number) => boolean): Promise<void> {
    const bound = this.#lines.all[0]?.piece
    const { isLoadingEarlier, hasEarlier } = this.#shown
    if (!this.#before || bound === undefined || this.#isReading || isLoadingEarlier || !hasEarlier)
      return Promise.resolve()
    this.#loadingBack = this.#loadBack(this.#before, bound, isEnough)
    return this.#loadingBack
  }

  async #loadBack(before: Before, bound: number, isEnough: (lines: number, bound: number) => boolean): Promise<void> {
    const room = MOST_LOADED - this.#lines.all.length
    this.#publish({ isLoadingEarlier: true })
    try {
      const lines = this.#lines
      await readBack(
        before,
        bound,
        (many, at) => many >= room || isEnough(many, at),
        // Block by block, as all at once would hold the page up; to be told of when they are there.
        (block) => {
          // The end may have been read anew meanwhile, or the first lines dropped: these belong before neither.
          if (lines !== this.#lines || (lines.all[0]?.piece ?? 0) <= (block.at(-1)?.id ?? 0)) return false
          lines.prepend(this.#unseen(block))
          this.#look(Number.POSITIVE_INFINITY)
          return true
        },
      )
      this.#publish({ isLoadingEarlier: false, error: null })
    } catch (failed) {
      this.#publish({ isLoadingEarlier: false, error: asError(failed) })
    }
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#isReading || !this.#hasBegun || this.#queue.length === 0) return
    let many = 0
    let characters = 0
    while (many < this.#queue.length && characters < TAKEN_IN) characters += this.#queue[many++]?.text.length ?? 0
    this.#append(this.#queue.splice(0, many))
    this.#publish()
    if (this.#queue.length > 0) this.#timer = setTimeout(() => this.#flush())
  }

  #append(pieces: readonly Piece[]): void {
    const fresh = this.#unseen(pieces)
    const first = fresh[0]
    if (!first) return
    this.#before ??= new Before(this.#source.read, first.id)
    for (const { id } of fresh) this.#newest = Math.max(this.#newest, id)
    const changed = this.#lines.append(fresh)
    const dropped = this.#lines.all.length > MOST_LINES ? this.#lines.drop(MOST_LINES - DROPPED_LINES) : 0
    if (dropped > 0) {
      const bound = this.#lines.all[0]?.piece ?? 0
      for (const id of this.#seen) if (id < bound) this.#seen.delete(id)
      this.#shown = { ...this.#shown, dropped: this.#shown.dropped + dropped }
    }
    this.#look(changed)
  }

  #unseen(pieces: readonly Piece[]): Piece[] {
    return pieces.filter(({ id }) => {
      if (this.#seen.has(id)) return false
      this.#seen.add(id)
      return true
    })
  }

  #publish(changes: Partial<Shown> = {}): void {
    const lines = this.#lines.all
    this.#shown = {
      ...this.#shown,
      lines,
      hasEarlier: lines[0] !== undefined && this.#before?.has(lines[0].piece) === true,
      widest: this.#lines.widest,
      isFull: lines.length >= MOST_LOADED,
      matches: this.#matches?.keys ?? NONE,
      ...changes,
    }
    for (const listener of this.#listeners) listener()
  }
}

const NONE: readonly number[] = []

/** Hand over block after block before a bound, the newest first, until there are enough lines or `take` wants no more. */
async function readBack(
  before: Before,
  bound: number,
  isEnough: (lines: number, bound: number) => boolean,
  take: (block: Piece[]) => boolean,
): Promise<void> {
  let at = bound
  let lines = 0
  while (before.has(at) && !isEnough(lines, at)) {
    const block = await before.read(at)
    const first = block[0]
    if (!first || !take(block)) return
    at = first.id
    for (const { text } of block) lines += countLines(text)
  }
}

function countLines(text: string): number {
  let many = 0
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) many += 1
  return Math.max(many, 1)
}

/** Lines of output, put together from the pieces in which ranks ship it. */
import type { LogChunk } from "../../api/types"
import { plain, settled, styleBehind } from "./terminal"

export type Piece = LogChunk

export interface Line {
  /** Its place: one more than that of the line above it, whatever is put before the first or dropped there. */
  key: number
  /** Id of the piece in which it begins. */
  piece: number
  attempt: number
  rank: number
  at: string
  text: string
  /** Sequences of the style in which it begins. */
  style: string
}

/** A line of which a piece has the beginning alone: one that is longer than a piece, or the last of a rank. */
interface OpenLine {
  key: number
  raw: string
}

interface Stream {
  open: OpenLine | undefined
  style: string
}

export class Lines {
  #all: readonly Line[] = []
  #widest = 0
  readonly #streams = new Map<string, Stream>()

  /** All of them, oldest first; another list after each change. */
  get all(): readonly Line[] {
    return this.#all
  }

  /** Characters of the longest line there has been. */
  get widest(): number {
    return this.#widest
  }

  /** Put pieces behind the last line, oldest first. Returns the key of the first line that is new or has grown. */
  append(pieces: readonly Piece[]): number {
    const lines = this.#all.slice()
    const first = lines[0]?.key ?? 0
    let changed = first + lines.length
    for (const piece of pieces) {
      const stream = this.#streamOf(piece)
      const parts = piece.text.split("\n")
      parts.forEach((part, index) => {
        const isOpen = index === parts.length - 1
        if (isOpen && part === "") return
        const open = stream.open
        stream.open = undefined
        const grown = open && lines[open.key - first]
        const raw = (grown ? open.raw : "") + part
        const text = settled(raw)
        if (text.length > this.#widest) this.#widest = Math.max(this.#widest, plain(text).length)
        let key = first + lines.length
        if (grown) {
          key = grown.key
          changed = Math.min(changed, key)
          lines[key - first] = { ...grown, text }
        } else {
          const { id, attempt, rank, at } = piece
          lines.push({ key, piece: id, attempt, rank, at, text, style: stream.style })
        }
        // What was written over is gone; a return at the end counts once something follows it.
        if (isOpen) stream.open = { key, raw: raw.endsWith("\r") ? `${text}\r` : text }
        else stream.style = styleBehind(lines[key - first]?.style ?? "", text)
      })
    }
    this.#all = lines
    return changed
  }

  /**
   * Put pieces before the first line. Where a line longer than a piece goes across, it stays two: keys that are known
   * keep their lines.
   */
  prepend(pieces: readonly Piece[]): void {
    const earlier = new Lines()
    earlier.append(pieces)
    this.#widest = Math.max(this.#widest, earlier.widest)
    const shift = (this.#all[0]?.key ?? 0) - earlier.all.length
    this.#all = earlier.all.map((line, index) => ({ ...line, key: shift + index })).concat(this.#all)
  }

  /** Keep `most` lines at most: drop the oldest, up to the end of a piece. Returns how many those are. */
  drop(most: number): number {
    let cut = this.#all.length - most
    if (cut <= 0) return 0
    const last = this.#all[cut - 1]?.piece
    while (cut < this.#all.length && this.#all[cut]?.piece === last) cut += 1
    this.#all = this.#all.slice(cut)
    return cut
  }

  #streamOf({ attempt, rank }: Piece): Stream {
    const name = `${attempt} ${rank}`
    let stream = this.#streams.get(name)
    if (!stream) {
      stream = { open: undefined, style: "" }
      this.#streams.set(name, stream)
    }
    return stream
  }
}

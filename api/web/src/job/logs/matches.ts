/** Which of the loaded lines have the text that is looked for; of lines that come, only those are looked at. */
import type { Line } from "./lines"
import { plain } from "./terminal"

export interface Search {
  text: string
  matchCase: boolean
}

/** The pattern of a search, for one match after another. */
export function patternOf({ text, matchCase }: Search): RegExp {
  return new RegExp(text.replace(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`), matchCase ? "gu" : "giu")
}

/** Lines that are looked at in one go: a hundred thousand at once would hold the page up at each letter. */
export const LOOKED_AT = 20_000

export class Matches {
  #keys: readonly number[] = []
  #from = 0
  #to = 0
  readonly #pattern: RegExp

  constructor(search: Search) {
    this.#pattern = patternOf(search)
  }

  /** Keys of the lines with a match, upwards; another list after a change. */
  get keys(): readonly number[] {
    return this.#keys
  }

  /**
   * Look at lines from the key `changed` on, also once more, and at a good many before those that were looked at.
   * Returns whether none is left, which is then asked for again.
   */
  update(lines: readonly Line[], changed: number): boolean {
    const first = lines[0]?.key ?? 0
    const end = first + lines.length
    if (this.#from === this.#to) this.#from = this.#to = end
    const kept = Math.min(this.#to, Math.max(changed, first))
    const until = Math.min(this.#from, kept)
    const from = Math.max(first, until - LOOKED_AT)
    const before = this.#scan(lines, from, until)
    const behind = this.#scan(lines, Math.max(kept, first), end)
    const isCut = kept < this.#to || (this.#keys[0] ?? first) < first
    if (isCut || before.length > 0 || behind.length > 0) {
      this.#keys = [...before, ...this.#keys.filter((key) => key >= first && key < kept), ...behind]
    }
    this.#from = from
    this.#to = end
    return from === first
  }

  #scan(lines: readonly Line[], from: number, to: number): number[] {
    const first = lines[0]?.key ?? 0
    const found: number[] = []
    for (let key = from; key < to; key += 1) {
      const line = lines[key - first]
      if (!line) continue
      this.#pattern.lastIndex = 0
      if (this.#pattern.test(plain(line.text))) found.push(key)
    }
    return found
  }
}

/** News of jobs, gathered for a moment and then taken into the lists at once, so that a busy service is no busy page. */
import type { Progress } from "../api/types"
import type { JobNews } from "../live/events"

const GATHER_MS = 300
/** After this what could not be read is asked for again: nothing else would, as the stream has told it. */
const AGAIN_MS = 3_000
/** More jobs than this at once are read as a list rather than one by one. */
const MOST_ASKED = 20

/** Kinds of events after which a job's row is another. */
const CHANGES: ReadonlySet<string> = new Set(["state", "intent", "retry", "change"])

interface NewsTakers {
  /** Whether lists are being read: what is taken in now would be overwritten by what was read before it. */
  isReading: () => boolean
  onProgress: (progress: ReadonlyMap<number, Progress>) => void
  /** These jobs have changed in more than their progress. Answers with those that cannot be read for now. */
  onChanged: (ids: readonly number[]) => Promise<readonly number[]>
  /** There are new jobs. Answers whether they could be read. */
  onCome: () => Promise<boolean>
  /** More has happened than can be asked for one by one. */
  onMuch: () => Promise<void>
}

export class GatheredNews {
  readonly #takers: NewsTakers
  readonly #progress = new Map<number, Progress>()
  readonly #changed = new Set<number>()
  #hasCome = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #isTelling = false
  #isStopped = false

  constructor(takers: NewsTakers) {
    this.#takers = takers
  }

  take({ job_id: id, event, progress }: JobNews): void {
    if (progress) this.#progress.set(id, progress)
    else if (event?.kind === "submitted") this.#hasCome = true
    else if (event && CHANGES.has(event.kind)) this.#changed.add(id)
    else return
    this.#wait()
  }

  /** Read these jobs anew with the next news. */
  ask(ids: readonly number[]): void {
    for (const id of ids) this.#changed.add(id)
    if (ids.length > 0) this.#wait()
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  #wait(): void {
    if (!this.#isStopped) this.#timer ??= setTimeout(() => void this.#tell(), GATHER_MS)
  }

  /** Take back what could not be read; a service that is away is not asked at every one of its news. */
  #takeBack(unread: readonly number[], hasCome: boolean): void {
    for (const id of unread) this.#changed.add(id)
    this.#hasCome ||= hasCome
    if (this.#isStopped || (unread.length === 0 && !hasCome)) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#tell(), AGAIN_MS)
  }

  async #tell(): Promise<void> {
    this.#timer = undefined
    if (this.#isTelling || this.#takers.isReading()) {
      this.#wait()
      return
    }
    const progress = new Map(this.#progress)
    const changed = [...this.#changed]
    const hasCome = this.#hasCome
    this.#progress.clear()
    this.#changed.clear()
    this.#hasCome = false

    if (progress.size > 0) this.#takers.onProgress(progress)
    this.#isTelling = true
    try {
      if (changed.length > MOST_ASKED) await this.#takers.onMuch()
      else {
        const unread = changed.length > 0 ? await this.#takers.onChanged(changed) : []
        this.#takeBack(unread, hasCome && !(await this.#takers.onCome()))
      }
    } finally {
      this.#isTelling = false
    }
  }
}

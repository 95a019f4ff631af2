/** The series of a few jobs as they grow: read once, then fed by the event stream, published a few times a second. */
import { asError } from "../api/problems"
import type { Metric } from "../api/types"
import { curveOf, EMPTY, thinned, united, type Curve } from "./curve"
import { grouped } from "./grouped"

/** By metric's name. */
export type Curves = ReadonlyMap<string, Curve>

/** Points of each series that are asked for and kept, where there are not too many series. */
export const POINTS = 1_500

/** Values that the API puts into one answer at most; the share of room is for metrics that come while they are counted. */
const MOST_VALUES = 100_000
const ROOM = 1.1

/** Return how many points of each can be asked for where a job has so many metrics. */
export function pointsOf(metrics: number): number {
  return Math.max(2, Math.min(POINTS, Math.floor(MOST_VALUES / (ROOM * Math.max(1, metrics)))))
}

/** How long news are gathered before curves are drawn anew. */
const GATHER_MS = 400

export interface Snapshot {
  /** By job. A job that is not in it has not been read yet. */
  readonly jobs: ReadonlyMap<number, Curves>
  /** What went wrong with the last reading, by job. */
  readonly errors: ReadonlyMap<number, Error>
}

type Read = (job: number, signal: AbortSignal) => Promise<readonly Metric[]>

export const NO_CURVES: Curves = new Map()

export class MetricStore {
  #snapshot: Snapshot = { jobs: new Map(), errors: new Map() }
  /** News that no snapshot has yet. */
  #pending = new Map<number, Metric[]>()
  /** News since a reading was begun: its answer may be older than they are. */
  readonly #readings = new Map<number, { abort: AbortController; since: Metric[] }>()
  /** Jobs that were read at their end, or are being read. */
  #ended: ReadonlySet<number> = new Set()
  #timer: ReturnType<typeof setTimeout> | undefined
  readonly #listeners = new Set<() => void>()

  constructor(readonly read: Read) {}

  readonly get = (): Snapshot => this.#snapshot

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Read a job's series anew, in place of what is kept of them. */
  async load(job: number): Promise<void> {
    this.#readings.get(job)?.abort.abort()
    const reading = { abort: new AbortController(), since: [] as Metric[] }
    this.#readings.set(job, reading)
    try {
      const items = await this.read(job, reading.abort.signal)
      if (this.#readings.get(job) !== reading) return
      this.#readings.delete(job)
      // What waits is in `since` too, or in the answer.
      this.#pending.delete(job)
      this.#publish([[job, takenIn(takenIn(NO_CURVES, items), reading.since)]])
    } catch (error) {
      if (this.#readings.get(job) !== reading) return
      this.#readings.delete(job)
      const errors = new Map(this.#snapshot.errors).set(job, asError(error))
      this.#tell({ ...this.#snapshot, errors })
    }
  }

  /** Read a job that nothing is known of, and that is not being read. */
  loadIfUnknown(job: number): void {
    if (!this.#snapshot.jobs.has(job) && !this.#readings.has(job)) void this.load(job)
  }

  /** Read each job when it has ended, also one that is known: its stream is left then, and may have had more to tell. */
  loadEnded(jobs: readonly number[]): void {
    for (const job of jobs) if (!this.#ended.has(job)) void this.load(job)
    this.#ended = new Set(jobs)
  }

  /** Take in what the stream told of a job. */
  add(job: number, items: readonly Metric[]): void {
    this.#readings.get(job)?.since.push(...items)
    const waiting = this.#pending.get(job)
    if (waiting) waiting.push(...items)
    else this.#pending.set(job, [...items])
    this.#timer ??= setTimeout(() => this.#flush(), GATHER_MS)
  }

  /** Let go of whatever is under way. */
  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const { abort } of this.#readings.values()) abort.abort()
    this.#readings.clear()
    this.#ended = new Set()
  }

  #flush(): void {
    this.#timer = undefined
    const pending = this.#pending
    this.#pending = new Map()
    // A job that was not read yet gets what came meanwhile with its reading.
    const known = [...pending].filter(([job]) => this.#snapshot.jobs.has(job))
    if (known.length === 0) return
    this.#publish(known.map(([job, items]) => [job, takenIn(this.#snapshot.jobs.get(job) ?? NO_CURVES, items)]))
  }

  #publish(changed: readonly (readonly [number, Curves])[]): void {
    const jobs = new Map(this.#snapshot.jobs)
    const errors = new Map(this.#snapshot.errors)
    for (const [job, curves] of changed) {
      jobs.set(job, curves)
      errors.delete(job)
    }
    this.#tell({ jobs, errors })
  }

  #tell(snapshot: Snapshot): void {
    this.#snapshot = snapshot
    for (const listener of this.#listeners) listener()
  }
}

/** Return the curves with `items` in them; a series that has grown to twice what is asked for is thinned again. */
export function takenIn(curves: Curves, items: readonly Metric[]): Curves {
  if (items.length === 0) return curves
  const byName = grouped(items, ({ name }) => name)
  const all = new Map(curves)
  for (const [name, its] of byName) {
    const curve = united(all.get(name) ?? EMPTY, curveOf(its))
    all.set(name, curve.steps.length > 2 * POINTS ? thinned(curve, POINTS) : curve)
  }
  return all
}

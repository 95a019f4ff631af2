/** The readings of a job's devices, newest first to be had: the API gives them oldest first, and a long run has too many. */
import type { DeviceSample } from "../../api/types"

export interface Samples {
  /** By time. */
  readonly items: readonly DeviceSample[]
  /** There are earlier ones in the time that was asked for. */
  readonly isCut: boolean
}

/** Returns all readings of a stretch of time in milliseconds, by time; no end means up to the last one. */
export type ReadSamples = (begin: number, end: number | undefined) => Promise<readonly DeviceSample[]>

/** About so many are shown: four charts of more points than that are no clearer, and take long to read. */
export const MOST_SAMPLES = 10_000

/** The first look back; eight devices have a hundred or so readings in it. */
const FIRST_LOOK_MS = 15 * 60_000
/** A look that brought fewer is followed by one twice as far. */
const FEW = 500

interface Asked {
  begin: number
  /** Where the time that is asked for ends; with `isOpen` that is now, by a clock that may not be the service's. */
  end: number
  isOpen: boolean
}

/** Read the newest of a time, going back from its end; what is `kept` of an earlier reading is not read again. */
export async function newestSamples(read: ReadSamples, asked: Asked, kept?: Samples): Promise<Samples> {
  const last = kept?.items.at(-1)?.at
  // The last one may have grown since: it sums up a minute.
  const bound = last === undefined ? asked.begin : Date.parse(last)
  const looks: (readonly DeviceSample[])[] = []
  let many = 0
  let back = FIRST_LOOK_MS
  let begin = asked.isOpen ? Math.max(asked.end, bound + 1) : asked.end
  while (begin > bound && many < MOST_SAMPLES) {
    const end = asked.isOpen && looks.length === 0 ? undefined : begin
    begin = Math.max(bound, begin - back)
    const found = await read(begin, end)
    looks.unshift(found)
    many += found.length
    if (found.length < FEW) back *= 2
  }
  if (begin > bound || !kept) return newestOf(looks.flat(), begin > bound)
  const before = kept.items.filter(({ at }) => last === undefined || Date.parse(at) < bound)
  return newestOf([...before, ...looks.flat()], kept.isCut)
}

function newestOf(items: readonly DeviceSample[], isCut: boolean): Samples {
  return items.length > MOST_SAMPLES ? { items: items.slice(-MOST_SAMPLES), isCut: true } : { items, isCut }
}

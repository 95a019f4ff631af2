/** What of jobs' specs differs, as the lines of a table. */
import { differencesOf } from "../format/differences"
import type { Json, JsonObject } from "../format/json"
import { count } from "../format/numbers"

interface SpecDifference {
  /** `train.lr` */
  field: string
  /** One for each spec; null where it does not have the field. */
  values: (string | null)[]
}

/** What names a job says nothing of how it trains. */
const NAMES: ReadonlySet<string> = new Set(["name"])

export function specDifferences(specs: readonly Record<string, unknown>[]): SpecDifference[] {
  // What comes as JSON has nothing else in it, whatever the schema of the release that has written it.
  return differencesOf(specs as readonly JsonObject[])
    .map(({ path, values }) => ({ field: path.join("."), values: values.map(inWords) }))
    .filter(({ field }) => !NAMES.has(field))
}

function inWords(value: Json | undefined): string | null {
  if (value === undefined) return null
  if (typeof value === "string") return value
  if (typeof value === "number" && Number.isInteger(value) && Math.abs(value) >= 10_000) return count(value)
  return JSON.stringify(value)
}

/** What of jobs' specs differs, field by field. */
import { count } from "../format/numbers"

export interface Difference {
  /** `train.lr` */
  field: string
  /** As text, one for each spec; null where a spec does not have the field. */
  values: (string | null)[]
}

/** What names a job says nothing of how it trains. */
const NAMES: ReadonlySet<string> = new Set(["name"])

/** Return the fields that are not the same in all specs, in the order in which the specs have them. */
export function differencesOf(specs: readonly Record<string, unknown>[]): Difference[] {
  const flat = specs.map((spec) => flattened(spec))
  const fields = new Set(flat.flatMap((each) => [...each.keys()]))
  return [...fields].flatMap((field) => {
    if (NAMES.has(field)) return []
    const values = flat.map((each) => each.get(field) ?? null)
    return values.every((value) => value === values[0]) ? [] : [{ field, values }]
  })
}

/** Return every field by its path; a list is one value, as its parts have no names. */
function flattened(value: unknown, path = "", into = new Map<string, string>()): Map<string, string> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    for (const [key, part] of Object.entries(value)) flattened(part, path === "" ? key : `${path}.${key}`, into)
    // Nothing in it is something too: it differs from what is not there.
    if (path !== "" && Object.keys(value).length === 0) into.set(path, "{}")
  } else into.set(path, text(value))
  return into
}

function text(value: unknown): string {
  if (typeof value === "string") return value
  if (typeof value === "number" && Number.isInteger(value) && Math.abs(value) >= 10_000) return count(value)
  return JSON.stringify(value)
}

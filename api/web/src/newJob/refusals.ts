/** Where on the form each thing is said that the service finds wrong. */
import type { FieldError } from "../api/types"
import { areEqual, valueAt, type JsonObject } from "../format/json"

/** A refusal is of the spec that was asked about, which may have been edited since. */
interface Refusal {
  spec: JsonObject
  errors: readonly FieldError[]
}

interface PlacedErrors {
  /** By the id of a field that the form has. */
  at: ReadonlyMap<string, string>
  /** What no field of the form stands for. */
  rest: readonly FieldError[]
}

/**
 * Place errors at the fields that they name, or that hold what they name: one of `train.augment.0` is at
 * `train.augment`, or at `train` where the form has no more of it.
 */
export function placed(errors: readonly FieldError[], ids: ReadonlySet<string>): PlacedErrors {
  const at = new Map<string, string>()
  const rest: FieldError[] = []
  for (const error of errors) {
    const id = fieldOf(error.field, ids)
    if (id === undefined) {
      rest.push(error)
      continue
    }
    const within = error.field.slice(id.length + 1)
    const message = within === "" ? error.message : `${within}: ${error.message}`
    const before = at.get(id)
    at.set(id, before === undefined ? message : `${before}; ${message}`)
  }
  return { at, rest }
}

/** Id of the innermost field that is, or holds, what a path names. */
export function fieldOf(path: string, ids: ReadonlySet<string>): string | undefined {
  for (let end = path.length; end > 0; end = path.lastIndexOf(".", end - 1)) {
    const id = path.slice(0, end)
    if (ids.has(id)) return id
  }
  return undefined
}

/** Errors that still hold for what stands in their field now. */
export function stillTrue(refusal: Refusal, spec: JsonObject): FieldError[] {
  return refusal.errors.filter(({ field }) => {
    const path = field.split(".")
    return areEqual(valueAt(refusal.spec, path), valueAt(spec, path))
  })
}

/** Errors of fields in which something stands: that a form just opened lacks the rest, nobody need be told. */
export function ofWhatIsSet(errors: readonly FieldError[], spec: JsonObject): FieldError[] {
  return errors.filter(({ field }) => valueAt(spec, field.split(".")) !== undefined)
}

/** What differs between objects of JSON, such as the specs of jobs, field by field. */
import { areEqual, isObject, type Json, type JsonObject, type Path } from "./json"

interface Difference {
  path: Path
  /** One for each object; undefined where one does not have the field. */
  values: readonly (Json | undefined)[]
}

/** Said where there is no value to tell. */
export const NO_VALUE = "none"

/** Return the innermost fields that are not the same in all objects, in the order in which these have them. */
export function differencesOf(objects: readonly JsonObject[], within: Path = []): Difference[] {
  const names = [...new Set(objects.flatMap((object) => Object.keys(object)))]
  return names.flatMap((name) => {
    const values = objects.map((object) => (Object.hasOwn(object, name) ? object[name] : undefined))
    const path = [...within, name]
    if (values.every((value) => areEqual(value, values[0]))) return []
    // A group that some of them lack is told by its fields all the same; where it has none, by itself.
    const groups = values.map((value) => (value === undefined ? {} : value)).filter(isObject)
    const fields = groups.length === values.length ? differencesOf(groups, path) : []
    return fields.length > 0 ? fields : [{ path, values }]
  })
}

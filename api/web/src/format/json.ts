/** JSON values: read and changed by path, compared, and the merge patch that leads from one to another. */

export type Json = null | boolean | number | string | Json[] | JsonObject

export interface JsonObject {
  [name: string]: Json
}

export type Path = readonly string[]

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}

export function areEqual(one: Json | undefined, other: Json | undefined): boolean {
  if (one === other) return true
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((each, index) => areEqual(each, other[index]))
  }
  if (!isObject(one) || !isObject(other)) return false
  const names = Object.keys(one)
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && areEqual(one[name], other[name]))
  )
}

export function valueAt(value: Json | undefined, path: Path): Json | undefined {
  let found = value
  for (const name of path) {
    if (!isObject(found) || !Object.hasOwn(found, name)) return undefined
    found = found[name]
  }
  return found
}

/** Return `target` with `value` at a path, or without what is there; an object that is left empty goes too. */
export function withValue(target: JsonObject, path: Path, value: Json | undefined): JsonObject {
  const [name, ...rest] = path
  if (name === undefined) return target
  const before = target[name]
  const within = rest.length > 0 ? withValue(isObject(before) ? before : {}, rest, value) : value
  const isGone = within === undefined || (rest.length > 0 && isObject(within) && Object.keys(within).length === 0)
  if (!isGone) return { ...target, [name]: within }
  return Object.fromEntries(Object.entries(target).filter(([each]) => each !== name))
}

/** The JSON merge patch (RFC 7396) that makes `to` of `from`: null takes a field out. */
export function patchBetween(from: JsonObject, to: JsonObject): JsonObject {
  const patch: JsonObject = {}
  for (const name of Object.keys(from)) {
    if (!Object.hasOwn(to, name)) patch[name] = null
  }
  for (const [name, after] of Object.entries(to)) {
    const before = from[name]
    if (areEqual(before, after)) continue
    patch[name] = isObject(before) && isObject(after) ? patchBetween(before, after) : after
  }
  return patch
}

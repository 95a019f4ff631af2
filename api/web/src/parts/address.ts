/** The parameters of the address: what of a page a person looks at. */
import { useSearchParams } from "wouter"

/** Parameters by name; null, as an empty text, takes one away. */
type Changes = Record<string, string | null>

export function useAddress() {
  const [params, setParams] = useSearchParams()
  /** With `isStep`, *back* returns to what was looked at before; what changes with each letter is no such step. */
  const change = (changes: Changes, { isStep = false } = {}) =>
    setParams((before) => changed(before, changes), { replace: !isStep })
  return { params, change }
}

export function changed(params: URLSearchParams, changes: Changes): URLSearchParams {
  const after = new URLSearchParams(params)
  for (const [name, value] of Object.entries(changes)) {
    if (value) after.set(name, value)
    else after.delete(name)
  }
  return after
}

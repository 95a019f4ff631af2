/** A draft, kept in the tab until it is submitted: a reload loses nothing. */
import { draftOf, type Draft } from "./draft"
import { isObject, type JsonObject } from "./json"

export class KeptDraft {
  readonly #key: string

  /** One for each user and each job that is cloned. */
  constructor(user: string | null, of: string) {
    this.#key = `rankzero.draft ${user ?? ""} ${of}`
  }

  /** What is kept; null where there is nothing that can be read. */
  get(): Draft | null {
    try {
      const spec = JSON.parse(sessionStorage.getItem(this.#key) ?? "null") as unknown
      return isObject(spec) ? draftOf(spec) : null
    } catch {
      return null
    }
  }

  keep(spec: JsonObject): void {
    sessionStorage.setItem(this.#key, JSON.stringify(spec))
  }

  forget(): void {
    sessionStorage.removeItem(this.#key)
  }
}

/** A draft, kept in the tab until it is submitted: a reload loses nothing. */
import { areEqual, isObject, type JsonObject } from "../format/json"
import { draftOf, type Draft } from "./draft"

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

  /** Forget what was submitted; what is written since then stays. */
  forgetSent(spec: JsonObject): void {
    if (areEqual(this.get()?.spec, spec)) this.forget()
  }
}

/** The token that requests carry: of this tab, or kept in the browser where its user asked for that. */

const KEY = "rankzero.token"

type Listener = () => void

class KeptToken {
  #value: string | null = sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY)
  #wasRefused = false
  readonly #listeners = new Set<Listener>()

  constructor() {
    // Another tab has signed in or out of what the browser keeps.
    window.addEventListener("storage", (event) => {
      if (event.key !== KEY || event.storageArea !== localStorage || sessionStorage.getItem(KEY) !== null) return
      this.#set(event.newValue, false)
    })
  }

  get value(): string | null {
    return this.#value
  }

  /** Whether the service has refused the last token, which is then forgotten. */
  get wasRefused(): boolean {
    return this.#wasRefused
  }

  /** Send `value` from now on; with `keep` also after the browser was closed. */
  signIn(value: string, { keep }: { keep: boolean }): void {
    this.#forget()
    ;(keep ? localStorage : sessionStorage).setItem(KEY, value)
    this.#set(value, false)
  }

  signOut(): void {
    this.#forget()
    this.#set(null, false)
  }

  /** The service answered 401 to `sent`: forget it, unless another one came in its place meanwhile. */
  refused(sent: string | null): void {
    if (sent === null || sent !== this.#value) return
    // What another tab has signed in with meanwhile, and keeps, is none of its concern.
    for (const kept of [sessionStorage, localStorage]) if (kept.getItem(KEY) === sent) kept.removeItem(KEY)
    this.#set(null, true)
  }

  readonly subscribe = (listener: Listener): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #forget(): void {
    sessionStorage.removeItem(KEY)
    localStorage.removeItem(KEY)
  }

  #set(value: string | null, wasRefused: boolean): void {
    this.#value = value
    this.#wasRefused = wasRefused
    for (const listener of this.#listeners) listener()
  }
}

export const token = new KeptToken()

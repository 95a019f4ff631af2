/** What a person has set for this browser: time zone, density; the colour scheme is kept by Mantine beside it. */
import { useSyncExternalStore } from "react"

export type Density = "comfortable" | "compact"

export interface Settings {
  /** A name of the IANA database, or `local` for the browser's own. */
  timeZone: string
  density: Density
}

const KEY = "rankzero.settings"
const DEFAULTS: Settings = { timeZone: "local", density: "comfortable" }

type Listener = () => void

class KeptSettings {
  #value: Settings = read()
  readonly #listeners = new Set<Listener>()

  constructor() {
    window.addEventListener("storage", (event) => {
      if (event.key !== KEY) return
      this.#value = read()
      this.#tell()
    })
  }

  readonly get = (): Settings => this.#value

  change(changes: Partial<Settings>): void {
    this.#value = { ...this.#value, ...changes }
    localStorage.setItem(KEY, JSON.stringify(this.#value))
    this.#tell()
  }

  readonly subscribe = (listener: Listener): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #tell(): void {
    for (const listener of this.#listeners) listener()
  }
}

export const settings = new KeptSettings()

export function useSettings(): Settings {
  return useSyncExternalStore(settings.subscribe, settings.get)
}

/** What is stored, where it still means something: a time zone that this browser does not know is no reason to fail. */
function read(): Settings {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Record<keyof Settings, unknown>>
    return {
      timeZone: isTimeZone(stored.timeZone) ? stored.timeZone : DEFAULTS.timeZone,
      density: stored.density === "compact" ? "compact" : DEFAULTS.density,
    }
  } catch {
    return DEFAULTS
  }
}

function isTimeZone(name: unknown): name is string {
  if (typeof name !== "string") return false
  if (name === "local") return true
  try {
    new Intl.DateTimeFormat(undefined, { timeZone: name })
    return true
  } catch {
    return false
  }
}

/** Parts of the page that are loaded when they are first shown, also by a service that is away just then. */
import { lazy, type ComponentType, type LazyExoticComponent } from "react"

import { dashboardPath } from "../place"

const PAUSE_MS = 2_000
const BEGUN_ANEW = "rankzero.begun-anew"

type Loaded<P> = Promise<{ default: ComponentType<P> }>

/** As React's `lazy`, which keeps a failure for ever; this one waits for the service, and what is shown heals with it. */
export function lazyPart<P>(load: () => Loaded<P>): LazyExoticComponent<ComponentType<P>> {
  return lazy(() => persistently(load))
}

export async function persistently<P>(load: () => Loaded<P>): Loaded<P> {
  for (;;) {
    try {
      return await load()
    } catch (error) {
      if (await isServed()) return await loadAtLast(load, error)
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    }
  }
}

/**
 * The service is there: it may have come back meanwhile. If not, it was upgraded, and has no such part any more: the
 * page begins anew with its new build. Once for each part, whose name is in the error and changes with each build:
 * a service that lacks it would have the page begin anew for ever.
 */
async function loadAtLast<P>(load: () => Loaded<P>, first: unknown): Loaded<P> {
  try {
    return await load()
  } catch (error) {
    const part = String(first)
    if (sessionStorage.getItem(BEGUN_ANEW) === part) throw error
    sessionStorage.setItem(BEGUN_ANEW, part)
    location.reload()
    return new Promise(() => undefined)
  }
}

async function isServed(): Promise<boolean> {
  try {
    return (await fetch(`${dashboardPath}/`, { method: "HEAD", cache: "no-store" })).ok
  } catch {
    return false
  }
}

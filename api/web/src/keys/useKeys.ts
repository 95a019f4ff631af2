/** Listens to the keyboard for the keys of actions, also for two in a row. */
import { useEffect } from "react"

import { actions } from "./actions"

/** How long the second key of two may take, by the events' own clock. */
const SEQUENCE_MS = 1_500

export function useKeys(): void {
  useEffect(() => {
    let first: { key: string; at: number } | undefined
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isForInput(event)) return
      if (event.key === "Shift") return
      const before = first && event.timeStamp - first.at < SEQUENCE_MS ? first.key : undefined
      first = undefined
      const offered = actions.get()
      const both =
        before === undefined ? undefined : offered.findLast((action) => action.keys === `${before} ${event.key}`)
      const action = both ?? offered.findLast((each) => each.keys === event.key)
      if (action) {
        event.preventDefault()
        action.run()
      } else if (offered.some((each) => each.keys?.startsWith(`${event.key} `))) {
        first = { key: event.key, at: event.timeStamp }
      }
    }
    document.addEventListener("keydown", onKey)
    return () => document.removeEventListener("keydown", onKey)
  }, [])
}

/** Whether the key is text for a field, or meant for an open dialog, menu or list. */
function isForInput(event: KeyboardEvent): boolean {
  const target = event.target
  if (!(target instanceof HTMLElement)) return false
  if (target.isContentEditable || target.closest("[role=dialog],[role=menu],[role=listbox]")) return true
  return target.matches("input:not([type=checkbox],[type=radio],[type=button]),textarea,select")
}

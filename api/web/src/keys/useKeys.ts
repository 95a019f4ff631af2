/** Listens to the keyboard for the keys of actions, also for two in a row. */
import { useEffect } from "react"

import { actions, type Action } from "./actions"

/** How long the second key of two may take, by the events' own clock. */
const SEQUENCE_MS = 1_500

export function useKeys(): void {
  useEffect(() => {
    let first: { key: string; at: number } | undefined
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.altKey) return
      const offered = actions.get()
      if (event.ctrlKey || event.metaKey) {
        run(event, offered, `Control+${event.key.toLowerCase()}`)
        return
      }
      if (event.key === "Shift" || isForInput(event)) return
      const before = first && event.timeStamp - first.at < SEQUENCE_MS ? first.key : undefined
      first = undefined
      if (before !== undefined && run(event, offered, `${before} ${event.key}`)) return
      if (run(event, offered, event.key)) return
      if (offered.some(({ keys }) => keys?.startsWith(`${event.key} `))) first = { key: event.key, at: event.timeStamp }
    }
    document.addEventListener("keydown", onKey)
    return () => document.removeEventListener("keydown", onKey)
  }, [])
}

/** Run the newest action of these keys; whether there is one. */
function run(event: KeyboardEvent, offered: readonly Action[], keys: string): boolean {
  const action = offered.findLast((each) => each.keys === keys)
  if (!action) return false
  event.preventDefault()
  action.run()
  return true
}

/** Whether the key is text for a field, or meant for an open dialog, menu or list. */
function isForInput(event: KeyboardEvent): boolean {
  const target = event.target
  if (!(target instanceof HTMLElement)) return false
  if (target.isContentEditable || target.closest("[role=dialog],[role=menu],[role=listbox]")) return true
  return target.matches("input:not([type=checkbox],[type=radio],[type=button]),textarea,select")
}

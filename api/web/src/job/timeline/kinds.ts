/** Which kinds of events the timeline shows, as its address has them. */

/** A box to tick, and the API's kinds that it stands for. */
export const KINDS = [
  { name: "states", title: "States", of: ["submitted", "state"] },
  { name: "asked", title: "Asked and changed", of: ["intent", "retry", "change"] },
  { name: "log", title: "Messages", of: ["log"] },
  // A long run has thousands of them, so they are shown on demand.
  { name: "epochs", title: "Epochs", of: ["epoch"] },
] as const

const SHOWN_FIRST = ["states", "asked", "log"]

/** The boxes that are ticked: those of the parameter `kinds`, else all but epochs. */
export function kindsIn(search: URLSearchParams): ReadonlySet<string> {
  return new Set(search.get("kinds")?.split(",") ?? SHOWN_FIRST)
}

export function toggled(search: URLSearchParams, name: string): URLSearchParams {
  const shown = kindsIn(search)
  const names = KINDS.map((kind) => kind.name).filter((each) => (each === name ? !shown.has(each) : shown.has(each)))
  const after = new URLSearchParams(search)
  if (names.join() === SHOWN_FIRST.join()) after.delete("kinds")
  else after.set("kinds", names.join())
  return after
}

/** A job's state, told by colour and by word. */
import type { State } from "../api/types"
import classes from "./StateBadge.module.css"

export function StateBadge({ state }: { state: State }) {
  return (
    <span className={classes.badge} data-state={state}>
      {state}
    </span>
  )
}

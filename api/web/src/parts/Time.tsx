/** A point in time, as how long ago it was or as day and time; the other of the two is its title. */
import { dateTime, duration, secondsBetween } from "../format/times"
import { useNow } from "../format/now"
import { useSettings } from "../settings/settings"

/** `3 min ago`, or `in 3 min` for what is to come. */
export function Ago({ at }: { at: string }) {
  const { timeZone } = useSettings()
  const passed = secondsBetween(at, useNow())
  // Two clocks are never quite the same: what has just been is not still to come.
  const text = Math.abs(passed) < 1 ? "now" : passed > 0 ? `${duration(passed)} ago` : `in ${duration(-passed)}`
  return (
    <time dateTime={at} title={dateTime(at, timeZone)}>
      {text}
    </time>
  )
}

/** Day and time. */
export function At({ at }: { at: string }) {
  const { timeZone } = useSettings()
  return <time dateTime={at}>{dateTime(at, timeZone)}</time>
}

/** How long something takes or took: until now where it has no end. */
export function Lasted({ from, to }: { from: string; to: string | null }) {
  const now = useNow()
  return <>{duration(secondsBetween(from, to ?? now))}</>
}

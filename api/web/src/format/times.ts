/** Points in time and stretches of it, in the browser's locale and the time zone that was set. */

import { count } from "./numbers"

const UNITS = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
] as const

/** The largest two units of so many seconds: `2 d 3 h`, `4 min 5 s`, `0 s`. */
export function duration(seconds: number): string {
  let left = Math.max(0, Math.round(seconds))
  const parts: string[] = []
  for (const [unit, size] of UNITS) {
    const many = Math.floor(left / size)
    left -= many * size
    if (many > 0 || (unit === "s" && parts.length === 0)) parts.push(`${count(many)} ${unit}`)
    else if (parts.length > 0) break
    if (parts.length === 2) break
  }
  return parts.join(" ")
}

/** Seconds from one time to another. */
export function secondsBetween(from: string | number, to: string | number): number {
  return (new Date(to).getTime() - new Date(from).getTime()) / 1000
}

/** Day and time to the second; `timeZone` as the settings have it. */
export function dateTime(at: string | number, timeZone: string): string {
  return format(at, timeZone, { dateStyle: "medium", timeStyle: "medium" })
}

/** Time of day to the second. */
export function timeOfDay(at: string | number, timeZone: string): string {
  return format(at, timeZone, { timeStyle: "medium" })
}

const FORMATS = new Map<string, Intl.DateTimeFormat>()

function format(at: string | number, timeZone: string, options: Intl.DateTimeFormatOptions): string {
  const key = `${timeZone} ${options.dateStyle ?? ""} ${options.timeStyle ?? ""}`
  let made = FORMATS.get(key)
  if (!made) {
    made = new Intl.DateTimeFormat(undefined, { ...options, timeZone: timeZone === "local" ? undefined : timeZone })
    FORMATS.set(key, made)
  }
  return made.format(new Date(at))
}

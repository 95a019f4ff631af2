/** Numbers as people read them, in the browser's own locale. */

const COUNT = new Intl.NumberFormat()
// Made once: to make one takes as long as to format a thousand numbers.
const PLAIN = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 4 })
const BY_POWER = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 4, notation: "scientific" })
const PERCENT = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 0 })
const WHOLE = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 })
const TENTHS = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 })
const BYTES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]

/** `12345` → `12,345`. */
export function count(value: number): string {
  return COUNT.format(value)
}

/** A metric's value with four significant digits, or by its power of ten where that is far from one; `NaN` as such. */
export function figure(value: number | null | undefined, kind?: string | null): string {
  if (value === null || value === undefined) return kind ? (NOT_FINITE[kind] ?? kind) : "–"
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞"
  const size = Math.abs(value)
  if (Number.isInteger(value) && size < 1e6) return COUNT.format(value)
  return (size !== 0 && (size < 1e-3 || size >= 1e6) ? BY_POWER : PLAIN).format(value)
}

const NOT_FINITE: Record<string, string> = { nan: "NaN", inf: "∞", "-inf": "−∞" }

/** A share from 0 to 1 as whole percent. */
export function percent(share: number): string {
  return PERCENT.format(share)
}

/** `1536` → `1.5 KiB`. */
export function bytes(value: number): string {
  let unit = 0
  let left = value
  while (Math.abs(left) >= 1024 && unit < BYTES.length - 1) {
    left /= 1024
    unit += 1
  }
  return `${(unit === 0 ? WHOLE : TENTHS).format(left)} ${BYTES[unit] ?? ""}`
}

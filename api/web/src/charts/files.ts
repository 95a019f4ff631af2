/** Charts as files: a picture of what is seen, the values that are shown, and all values as the API has them. */
import { askFor } from "../api/client"
import { AXIS_TITLES, type Axis } from "./axis"
import type { Line } from "./lines"
import { GROUNDS, ink, type Scheme } from "./palette"

/** A name for a file out of a metric's: `train/loss` is no folder. */
export function fileName(...parts: (string | number)[]): string {
  return parts.join("-").replaceAll(/[^\p{L}\p{N}._-]+/gu, "-")
}

/** Return all values that a path of the API has as CSV; the token goes with the request, as no link could take it. */
export async function csvFrom(path: string): Promise<Blob> {
  return (await askFor(path)).blob()
}

/** Return what lines show, as CSV with a column for each: for charts that no single path of the API has. */
export function csvOf(lines: readonly Line[], axis: Axis): Blob {
  const places = [...new Set(lines.flatMap(({ at }) => at))].toSorted((one, other) => one - other)
  const columns = lines.map(({ at, values, kinds }) => {
    const column = new Map<number, string>()
    at.forEach((x, index) => column.set(x, String(values[index] ?? kinds?.[index] ?? "")))
    return column
  })
  const isTime = axis === "clock"
  const rows = places.map((x) => [
    isTime ? new Date(x * 1000).toISOString() : String(x),
    ...columns.map((column) => column.get(x) ?? ""),
  ])
  const all = [[AXIS_TITLES[axis], ...lines.map(({ label }) => label)], ...rows]
  return new Blob([all.map((row) => row.map(cell).join(",") + "\r\n").join("")], { type: "text/csv" })
}

/** RFC 4180; and a text that a spreadsheet would take for a formula begins with an apostrophe. */
function cell(text: string): string {
  const safe =
    /^[=+@\t\r]/.test(text) || (text.startsWith("-") && Number.isNaN(Number(text)) && text !== "-inf")
      ? `'${text}`
      : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

const ROW_PX = 18

/** Return a picture of a drawn chart with its title above and its lines' names below, on the ground of its theme. */
export async function picture(
  drawn: HTMLCanvasElement,
  { title, lines, scheme }: { title: string; lines: readonly Line[]; scheme: Scheme },
): Promise<Blob> {
  const ratio = devicePixelRatio
  const ground = GROUNDS[scheme]
  const canvas = document.createElement("canvas")
  canvas.width = drawn.width
  canvas.height = drawn.height + (26 + ROW_PX * lines.length + 6) * ratio
  const context = canvas.getContext("2d")
  if (context === null) throw new Error("This browser draws no pictures")
  context.fillStyle = ground.paper
  context.fillRect(0, 0, canvas.width, canvas.height)
  context.fillStyle = ground.text
  context.font = `600 ${14 * ratio}px system-ui, sans-serif`
  context.textBaseline = "middle"
  context.fillText(title, 12 * ratio, 14 * ratio)
  context.drawImage(drawn, 0, 26 * ratio)
  context.font = `${12 * ratio}px system-ui, sans-serif`
  lines.forEach(({ label, inkIndex }, row) => {
    const { colour, dash } = ink(inkIndex, scheme)
    const middle = 26 * ratio + drawn.height + (row + 0.5) * ROW_PX * ratio
    context.strokeStyle = colour
    context.lineWidth = 2 * ratio
    context.setLineDash(dash.map((length) => length * ratio))
    context.beginPath()
    context.moveTo(12 * ratio, middle)
    context.lineTo(40 * ratio, middle)
    context.stroke()
    context.fillText(label, 48 * ratio, middle)
  })
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("This browser makes no PNG"))), "image/png")
  })
}

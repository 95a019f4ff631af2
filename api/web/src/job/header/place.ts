/** Where a paused job is to go on, as a person fills it in. */
import type { Place } from "../../api/verbs"

interface PlaceFields {
  /** A device list, or a number of devices as JSON. */
  device: string
  ranks: string
  host: string
  nodes: string
}

export const NO_PLACE: PlaceFields = { device: "", ranks: "", host: "", nodes: "" }

/** What the service is told: only what was filled in. It judges each field; only what is no number or JSON throws here. */
export function placeOf({ device, ranks, host, nodes }: PlaceFields): Place {
  const place: Place = {}
  if (device.trim() !== "") place.device = deviceOf(device.trim())
  if (ranks.trim() !== "") place.nproc_per_node = numberOf("Ranks", ranks)
  if (host.trim() !== "") place.host = host.trim()
  if (nodes.trim() !== "") place.nodes = numberOf("Hosts", nodes)
  return place
}

function deviceOf(text: string): Place["device"] {
  if (!text.startsWith("{") && !text.startsWith("[")) return text
  try {
    return JSON.parse(text) as Place["device"]
  } catch (error) {
    throw new Error('Devices: this is no JSON; a number of devices is {"count": 2}', { cause: error })
  }
}

function numberOf(name: string, text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value)) throw new Error(`${name}: ${text} is no whole number`)
  return value
}

/** Which devices of a host have a tile of their own, and which are told together. */
import type { Device } from "../api/types"
import { count } from "../format/numbers"
import { inOrder, namesInShort } from "./deviceNames"
import { deviceStateOf } from "./hostState"

/** A host with GPUs has a CPU slot for each of its cores: more free ones than this are told in one line. */
const MOST_FREE_SLOTS = 4

interface Tiles {
  devices: Device[]
  /** `60 CPU slots free: cpu:4–63`, or null where each has a tile. */
  freeSlots: string | null
}

export function tilesOf(devices: readonly Device[]): Tiles {
  const ordered = inOrder(devices)
  const free = ordered.filter((device) => device.kind === "cpu" && deviceStateOf(device) === "free")
  if (free.length <= MOST_FREE_SLOTS) return { devices: ordered, freeSlots: null }
  const names = namesInShort(free.map(({ name }) => name))
  return {
    devices: ordered.filter((device) => !free.includes(device)),
    freeSlots: `${count(free.length)} CPU slots free: ${names}`,
  }
}

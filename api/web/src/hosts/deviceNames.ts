/** Names of devices: their order, and many of them in few words. */
import type { Device } from "../api/types"

/** Devices by kind as they are listed, and by number: as text, `cuda:10` would come before `cuda:2`. */
export function inOrder(devices: readonly Device[]): Device[] {
  const kinds = [...new Set(devices.map(({ name }) => split(name).kind))]
  return [...devices].sort((one, other) => {
    const [a, b] = [split(one.name), split(other.name)]
    return kinds.indexOf(a.kind) - kinds.indexOf(b.kind) || (a.index ?? 0) - (b.index ?? 0)
  })
}

/** `cuda:0`, `cuda:1`, `cuda:2`, `cuda:6` → `cuda:0–2, cuda:6`; the names are in order. */
export function namesInShort(names: readonly string[]): string {
  const runs: { kind: string; first: number | null; last: number | null }[] = []
  for (const name of names) {
    const { kind, index } = split(name)
    const run = runs[runs.length - 1]
    if (run && index !== null && run.kind === kind && run.last === index - 1) run.last = index
    else runs.push({ kind, first: index, last: index })
  }
  return runs
    .map(({ kind, first, last }) => {
      if (first === null) return kind
      return first === last ? `${kind}:${first}` : `${kind}:${first}–${last}`
    })
    .join(", ")
}

function split(name: string): { kind: string; index: number | null } {
  const [, kind, index] = /^(.+):(\d+)$/.exec(name) ?? []
  return kind === undefined ? { kind: name, index: null } : { kind, index: Number(index) }
}

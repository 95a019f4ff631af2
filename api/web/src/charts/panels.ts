/** Which metrics stand in which chart, and the charts in which part of the page. */
import { grouped } from "./grouped"

interface Panel {
  title: string
  /** Metrics, each a curve of its own. */
  names: string[]
}

interface Section {
  title: string
  panels: Panel[]
}

/** What a metric without a prefix stands under. */
const OTHER = "other"
const FIRST = ["train", "val", "test"]
/** What says how it works rather than what comes of it. */
const LAST = ["lr", "images_per_s"]

/** Return a chart for each metric, in parts by prefix; `isTogether`: one chart for `train/loss` and `val/loss`, in one part. */
export function sectionsOf(names: Iterable<string>, { isTogether }: { isTogether: boolean }): Section[] {
  const sorted = [...names].toSorted(byPart)
  if (isTogether) {
    const byLeaf = grouped(sorted, leafOf)
    const panels = [...byLeaf].map(([title, its]) => ({
      title: its.length === 1 ? (its[0] ?? title) : title,
      names: its,
    }))
    const inOrder = panels.toSorted((one, other) => weight(one.title) - weight(other.title))
    return panels.length === 0 ? [] : [{ title: "All metrics", panels: inOrder }]
  }
  const byPrefix = grouped(sorted, prefixOf)
  return [...byPrefix].map(([title, its]) => ({ title, panels: its.map((name) => ({ title: name, names: [name] })) }))
}

function prefixOf(name: string): string {
  const end = name.indexOf("/")
  return end > 0 ? name.slice(0, end) : OTHER
}

function leafOf(name: string): string {
  const end = name.indexOf("/")
  return end > 0 ? name.slice(end + 1) : name
}

function byPart(one: string, other: string): number {
  return (
    rank(one) - rank(other) ||
    compare(prefixOf(one), prefixOf(other)) ||
    weight(one) - weight(other) ||
    compare(one, other)
  )
}

/** Losses come first in their part. */
function weight(name: string): number {
  const leaf = leafOf(name)
  if (leaf.endsWith("loss")) return 0
  return LAST.includes(leaf) ? 2 : 1
}

function rank(name: string): number {
  const place = FIRST.indexOf(prefixOf(name))
  if (place >= 0) return place
  return prefixOf(name) === OTHER ? FIRST.length + 1 : FIRST.length
}

/** By code points: the same in each browser. */
function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

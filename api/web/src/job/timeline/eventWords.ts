/** What has happened to a job, event by event, in words. */
import type { JobEvent } from "../../api/types"
import { count, figure } from "../../format/numbers"
import { duration } from "../../format/times"
import { causeInWords } from "../../format/reasons"
import { isObject, type JsonObject } from "../../format/json"

interface Words {
  title: string
  /** What more there is to say; empty where the title says all. */
  more: string
}

const ASKED: Record<string, string> = { run: "Asked to run", pause: "Asked to pause", cancel: "Asked to cancel" }

export function eventWords(event: JobEvent): Words {
  const { kind, detail } = event
  switch (kind) {
    case "submitted":
      return { title: "Submitted", more: "" }
    case "state":
      return { title: `${event.from_state ?? "?"} → ${event.to_state ?? "?"}`, more: whyMoved(detail) }
    case "intent":
      return { title: ASKED[String(detail.intent)] ?? `Asked: ${shortly(detail.intent)}`, more: "" }
    case "retry":
      return { title: "Queued again by hand", more: "All of its retries are there again." }
    case "change":
      return { title: "Changed", more: changesIn(detail) }
    case "epoch":
      return { title: `Epoch ${shortly(detail.epoch)} ended`, more: epochIn(detail) }
    case "log":
      return { title: logTitle(detail.level), more: typeof detail.message === "string" ? detail.message : "" }
    default:
      return {
        title: kind,
        more: Object.entries(detail)
          .map(([name, value]) => `${name}: ${shortly(value)}`)
          .join(", "),
      }
  }
}

/** Figures of each class, where an epoch has any: class, then figures by name. */
export function classFigures({ kind, detail }: JobEvent): { names: string[]; rows: [string, JsonObject][] } | null {
  if (kind !== "epoch" || !isObject(detail.by_class)) return null
  const rows = Object.entries(detail.by_class).filter((row): row is [string, JsonObject] => isObject(row[1]))
  if (rows.length === 0) return null
  return { names: [...new Set(rows.flatMap(([, figures]) => Object.keys(figures)))], rows }
}

type Fields = Record<string, unknown>

function whyMoved(detail: Fields): string {
  const words: string[] = []
  if (typeof detail.outcome === "string") words.push(`The attempt ended: ${detail.outcome}`)
  if (typeof detail.cause === "string") words.push(causeInWords(detail.cause))
  if (typeof detail.rank === "number") words.push(`rank ${detail.rank}`)
  if (typeof detail.message === "string") words.push(detail.message)
  if (Array.isArray(detail.placements)) words.push(detail.placements.map(placementIn).join("; "))
  return words.join(" · ")
}

function placementIn(placement: unknown): string {
  if (!isObject(placement)) return ""
  const devices = Array.isArray(placement.devices)
    ? placement.devices.map(shortly).join(", ")
    : shortly(placement.devices)
  return `${devices} on ${shortly(placement.host)}`
}

function changesIn(detail: Fields): string {
  return Object.entries(detail)
    .map(([name, value]) =>
      isObject(value) && "from" in value && "to" in value
        ? `${name}: ${shortly(value.from)} → ${shortly(value.to)}`
        : `${name}: ${shortly(value)}`,
    )
    .join(", ")
}

function epochIn(detail: Fields): string {
  const words: string[] = []
  if (typeof detail.step === "number") words.push(`step ${count(detail.step)}`)
  if (typeof detail.seconds === "number") words.push(`took ${duration(detail.seconds)}`)
  const nonfinite = isObject(detail.nonfinite) ? detail.nonfinite : {}
  for (const [name, value] of Object.entries(isObject(detail.values) ? detail.values : {})) {
    if (value !== null && typeof value !== "number") continue
    const kind = nonfinite[name]
    words.push(`${name} ${figure(value, typeof kind === "string" ? kind : undefined)}`)
  }
  return words.join(" · ")
}

function logTitle(level: unknown): string {
  return typeof level === "string" && level !== "" ? level.charAt(0).toUpperCase() + level.slice(1) : "Log"
}

/** A value of any kind on one line; labels and the like as `key=value`. */
function shortly(value: unknown): string {
  if (value === null || value === undefined) return "none"
  if (isObject(value)) {
    return (
      Object.entries(value)
        .map(([key, each]) => `${key}=${shortly(each)}`)
        .join(", ") || "none"
    )
  }
  return typeof value === "string" ? value : JSON.stringify(value)
}

/** A webhook as its form has it, and as the API takes it. */
import type { Webhook, WebhookTopic } from "../api/types"

export const TOPICS: Record<WebhookTopic, string> = {
  "job.queued": "A job was submitted, or waits again",
  "job.starting": "It was given its devices",
  "job.running": "It trains",
  "job.paused": "It has stopped with a checkpoint",
  "job.succeeded": "It has succeeded",
  "job.failed": "It has failed",
  "job.cancelled": "It was cancelled",
  "checkpoint.best": "It saved its best checkpoint so far",
}

export const TOPIC_NAMES = Object.keys(TOPICS) as WebhookTopic[]

export interface Draft {
  url: string
  topics: WebhookTopic[]
  /** One label a line, `key=value`. */
  labels: string
  description: string
  enabled: boolean
}

/** Return the draft of a webhook, or of a new one. */
export function draftOf(webhook: Webhook | undefined): Draft {
  return {
    url: webhook?.url ?? "",
    topics: TOPIC_NAMES.filter((topic) => webhook?.topics.includes(topic)),
    labels: Object.entries(webhook?.labels ?? {})
      .map(([key, value]) => `${key}=${value}`)
      .join("\n"),
    description: webhook?.description ?? "",
    enabled: webhook?.enabled ?? true,
  }
}

/** Return what the API takes; a line of the labels that is none is told. */
export function settingOf(draft: Draft) {
  const labels = labelsOf(draft.labels)
  if (typeof labels === "string") return { problem: labels }
  const { url, topics, description, enabled } = draft
  return { setting: { url: url.trim(), topics, labels, description: description.trim() || null, enabled } }
}

function labelsOf(text: string): Record<string, string> | string {
  const labels = new Map<string, string>()
  for (const line of text.split("\n").map((each) => each.trim())) {
    if (line === "") continue
    const at = line.indexOf("=")
    if (at < 1) return `“${line}” is no label: write key=value`
    const key = line.slice(0, at).trim()
    if (labels.has(key)) return `The label “${key}” has two values`
    labels.set(key, line.slice(at + 1).trim())
  }
  return Object.fromEntries(labels)
}

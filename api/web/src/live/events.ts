/** What the event stream tells: its topics and their data, as docs/streams.md has them. */
import type { Checkpoint, JobEvent, LogChunk, Metric, Progress } from "../api/types"

export interface JobNews {
  job_id: number
  /** What happened to it; null where only its progress is told. */
  event: JobEvent | null
  progress: Progress | null
}

interface Items<T> {
  job_id: number
  items: T[]
}

interface HostNews {
  host: string
  change: "registered" | "drained" | "undrained" | "removed" | "quarantined" | "released"
}

interface NewsByTopic {
  jobs: JobNews
  metrics: Items<Metric>
  logs: Items<LogChunk>
  checkpoints: Items<Checkpoint>
  hosts: HostNews
}

export type TopicName = keyof NewsByTopic

/** One event of a topic. */
export type News = { [T in TopicName]: { topic: T; data: NewsByTopic[T] } }[TopicName]

const TOPICS: ReadonlySet<string> = new Set<TopicName>(["jobs", "metrics", "logs", "checkpoints", "hosts"])

export function isTopic(name: string): name is TopicName {
  return TOPICS.has(name)
}

/** Why a job is where it is, in one line of words. */
import type { Failure, Job } from "../api/types"

/** For each cause of the trainer (`trainer/errors.py`). */
const CAUSES: Record<string, string> = {
  config: "Configuration cannot run",
  data: "Data missing or unreadable",
  checkpoint: "Checkpoint unusable",
  non_finite_loss: "Loss became NaN or infinite",
  out_of_memory: "Out of memory",
  disk_full: "Disk full",
  communication: "Ranks lost contact",
  killed_by_signal: "Killed from outside",
  exception: "Error in the training's code",
  device: "GPU failed",
  hang: "Hung without progress",
  time_limit: "Time limit reached",
  lost: "Host or supervisor lost",
  interrupted: "Interrupted",
}

/** A failure's cause in words; one of a later release as it is called there. */
export function causeInWords(cause: string): string {
  return CAUSES[cause] ?? capitalised(cause.replaceAll("_", " "))
}

/** Cause, rank and message of a failure; the rank only where the message does not name it by itself. */
export function failureInWords(failure: Failure): string {
  const { cause, message, rank } = failure
  const isNamed = cause === "config" || cause === "data" || message.startsWith(`rank ${rank} `)
  const where = rank === null || rank === undefined || isNamed ? "" : ` on rank ${rank}`
  const said = message.startsWith(`${cause}: `) ? message.slice(cause.length + 2) : message
  return `${causeInWords(cause)}${where}: ${said}`
}

/** What a job is asked to do, or was when it ended; null where its state says so already. */
export function intentInWords({
  state,
  intent,
  finished_at,
}: Pick<Job, "state" | "intent" | "finished_at">): string | null {
  const isOver = finished_at !== null
  if (intent === "cancel") {
    if (state === "cancelled") return null
    return isOver ? "Was to be cancelled, and ended before that" : "Is being cancelled"
  }
  if (intent === "pause") {
    if (state === "paused") return null
    if (isOver) return "Was to pause, and ended before that"
    return state === "queued" ? "Is to pause" : "Saves a checkpoint, then pauses"
  }
  return state === "paused" ? "Is to go on" : null
}

/** What a job is asked to do, what it waits for, or why it failed; null where its state says all. */
export function whyHere(job: Job): string | null {
  const said = [intentInWords(job), reasonOf(job)].filter((part) => part !== null)
  return said.length === 0 ? null : said.join(" · ")
}

function reasonOf(job: Job): string | null {
  if (job.state === "failed") return job.failure && failureInWords(job.failure)
  if (job.state === "queued") return capitalised(job.reason ?? "waits for the next plan")
  return null
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

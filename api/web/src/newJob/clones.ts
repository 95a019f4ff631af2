/** The spec of a job that is cloned, as the form has it, and what a clone begins with. */
import type { Job, Me } from "../api/types"
import type { JsonObject } from "../format/json"
import type { Parent } from "./requests"
import { sparse, type Field } from "./schemas"

/** What of a job's spec differs from the defaults, with the priority and labels that it has now. */
export function specOf(job: Job, fields: readonly Field[]): JsonObject {
  const now = { ...job.spec, priority: job.priority, labels: job.labels } as JsonObject
  return { train: {}, ...sparse(now, fields) }
}

interface Beginning {
  parent: Parent
  /** Id of a checkpoint of the job, as the address has it. */
  checkpoint: string | null
  mode: string | null
  me: Me
  isAdmin: boolean
}

export function startingFrom({ parent, checkpoint, mode, me, isAdmin }: Beginning): JsonObject {
  const first = { ...parent.spec }
  // A clone of somebody else's job is one's own; only an admin submits for others.
  if (!isAdmin && first.user !== me.user) delete first.user
  if (checkpoint !== null && Number.isSafeInteger(Number(checkpoint))) {
    first.start_from = {
      job: parent.job.id,
      checkpoint: Number(checkpoint),
      ...(mode === "resume" ? { mode } : {}),
    }
  }
  return first
}

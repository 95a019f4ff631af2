/** The same thing done to several jobs, and in words what it came to. */
import { Lanes } from "../api/lanes"
import { asError } from "../api/problems"
import type { Job } from "../api/types"
import { count } from "../format/numbers"

interface Outcome {
  done: Job[]
  failed: { id: number; error: Error }[]
}

const AT_ONCE = 4
/** So many failures are told with their reason; the others are counted. */
const MOST_TOLD = 3

export async function doToAll(ids: readonly number[], act: (id: number) => Promise<Job>): Promise<Outcome> {
  const lanes = new Lanes(AT_ONCE)
  const outcome: Outcome = { done: [], failed: [] }
  await Promise.all(
    ids.map((id) =>
      lanes.run(async () => {
        try {
          outcome.done.push(await act(id))
        } catch (error) {
          outcome.failed.push({ id, error: asError(error) })
        }
      }),
    ),
  )
  return outcome
}

export function jobsInWords(many: number): string {
  return many === 1 ? "1 job" : `${count(many)} jobs`
}

/** What was refused, and why, in the service's own words. */
export function failuresInWords(verb: string, { done, failed }: Outcome): string {
  const told = failed.slice(0, MOST_TOLD).map(({ id, error }) => `job ${id}: ${error.message}`)
  const more = failed.length > MOST_TOLD ? ` · and ${count(failed.length - MOST_TOLD)} more` : ""
  return `${verb}: ${count(done.length)} of ${jobsInWords(done.length + failed.length)} done. Refused: ${told.join(" · ")}${more}`
}

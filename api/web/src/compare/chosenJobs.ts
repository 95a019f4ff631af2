/** Which jobs are compared: the address says so, `?jobs=3,5`. */

import { jobIdsIn } from "../api/jobId"
import { MOST_LINES } from "../charts/palette"
import { useAddress } from "../parts/address"

export const MOST_JOBS = MOST_LINES

/** The jobs of a text, as many as can be told apart, and how many more there are. */
export function chosenIn(text: string | null): { chosen: number[]; leftOut: number } {
  const ids = jobIdsIn(text)
  const chosen = ids.slice(0, MOST_JOBS)
  return { chosen, leftOut: ids.length - chosen.length }
}

export function useChosenJobs() {
  const { params, change } = useAddress()
  const choose = (jobs: readonly number[]) => change({ jobs: jobs.join(",") }, { isStep: true })
  return { ...chosenIn(params.get("jobs")), choose }
}

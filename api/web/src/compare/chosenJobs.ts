/** Which jobs are compared: the address says so, `?jobs=3,5`. */
import { useSearchParams } from "wouter"

import { jobIdsIn } from "../api/jobId"
import { MOST_LINES } from "../charts/palette"

export const MOST_JOBS = MOST_LINES

/** The jobs of a text, as many as can be told apart, and how many more there are. */
export function chosenIn(text: string | null): { chosen: number[]; leftOut: number } {
  const ids = jobIdsIn(text)
  const chosen = ids.slice(0, MOST_JOBS)
  return { chosen, leftOut: ids.length - chosen.length }
}

export function useChosenJobs() {
  const [params, setParams] = useSearchParams()
  const choose = (jobs: readonly number[]) =>
    setParams((before) => {
      const next = new URLSearchParams(before)
      if (jobs.length === 0) next.delete("jobs")
      else next.set("jobs", jobs.join(","))
      return next
    })
  return { ...chosenIn(params.get("jobs")), choose }
}

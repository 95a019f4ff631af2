/** Which jobs are compared: the address says so, `?jobs=3,5`. */
import { useSearchParams } from "wouter"

import { MOST_LINES } from "../charts/palette"

export const MOST_JOBS = MOST_LINES

/** Return the numbers in the text, each once and in their order; what is none is passed over. */
export function chosenIn(text: string | null): number[] {
  const numbers = (text ?? "").split(",").filter((each) => /^[1-9]\d{0,14}$/.test(each))
  return [...new Set(numbers.map(Number))].slice(0, MOST_JOBS)
}

export function useChosenJobs(): [number[], (jobs: readonly number[]) => void] {
  const [params, setParams] = useSearchParams()
  const choose = (jobs: readonly number[]) =>
    setParams((before) => {
      const next = new URLSearchParams(before)
      if (jobs.length === 0) next.delete("jobs")
      else next.set("jobs", jobs.join(","))
      return next
    })
  return [chosenIn(params.get("jobs")), choose]
}

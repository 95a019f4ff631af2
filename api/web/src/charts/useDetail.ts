/** The curves of jobs with all the detail there is for what is zoomed into. */
import { queryOptions, useQueries } from "@tanstack/react-query"
import { useMemo } from "react"

import { api, data } from "../api/client"
import { stepsWithin, type Axis, type Origin, type Range, type Steps } from "./axis"
import { EMPTY, united } from "./curve"
import { NO_CURVES, pointsOf, takenIn, type Curves } from "./metricStore"

interface Wanted {
  job: number
  origin: Origin
}

/** Return, by job, what `known` has and, where there is a zoom, as many points of each metric within it besides. */
export function useDetail(
  known: ReadonlyMap<number, Curves>,
  jobs: readonly Wanted[],
  axis: Axis,
  zoom: Range | null,
): ReadonlyMap<number, Curves> {
  const queries = jobs.flatMap(({ job, origin }) => {
    const curves = known.get(job)
    const steps = zoom && curves ? stepsWithin(curves.values(), zoom, axis, origin) : null
    return steps ? [detailQuery(job, steps, pointsOf(curves?.size ?? 0))] : []
  })
  // One value as long as nothing of it changes: curves are not put together anew with each movement of the mouse.
  const details = useQueries({ queries, combine: answers })
  return useMemo(() => {
    const all = new Map(known)
    for (const { job, curves } of details) all.set(job, bothOf(all.get(job) ?? NO_CURVES, curves))
    return all
  }, [known, details])
}

interface Detail {
  job: number
  curves: Curves
}

function detailQuery(job: number, { from, to }: Steps, points: number) {
  return queryOptions({
    queryKey: ["metric-detail", job, from, to, points],
    // What is added or measured again meanwhile comes by the stream.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
    structuralSharing: false,
    queryFn: async ({ signal }): Promise<Detail> => {
      const query = { points, from_step: from, ...(to === null ? {} : { to_step: to }) }
      const answer = await data(api.GET("/jobs/{job_id}/metrics", { params: { path: { job_id: job }, query }, signal }))
      return { job, curves: takenIn(NO_CURVES, answer.items) }
    },
  })
}

function answers(results: readonly { data: Detail | undefined }[]): Detail[] {
  return results.flatMap((result) => result.data ?? [])
}

function bothOf(known: Curves, detail: Curves): Curves {
  return new Map([...known].map(([name, curve]) => [name, united(curve, detail.get(name) ?? EMPTY)]))
}

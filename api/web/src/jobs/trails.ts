/** A job's trail: the last values of its main metric, which its row shows as a line. */
import { queryOptions, type QueryClient } from "@tanstack/react-query"

import { api, data } from "../api/client"
import { Lanes } from "../api/lanes"
import { keys } from "../api/queries"
import type { Job, Progress } from "../api/types"

const POINTS = 40

const lanes = new Lanes(3)

/** The loss of training where there is one, or else of anything, or else the first metric that is told. */
export function mainMetric(progress: Progress | null): string | undefined {
  const names = Object.keys(progress?.values ?? {})
  return names.find((name) => name === "train/loss") ?? names.find((name) => name.endsWith("loss")) ?? names[0]
}

/** Among what is live, as a trail that missed a part of its way is to be read anew. */
const TRAILS = [...keys.live, "trail"] as const

function trailKey(id: number, name: string | undefined) {
  return [...TRAILS, id, name] as const
}

export function trailQuery(job: Pick<Job, "id" | "progress">) {
  const name = mainMetric(job.progress)
  return queryOptions({
    queryKey: trailKey(job.id, name),
    enabled: name !== undefined,
    queryFn: async ({ signal }) => {
      const query = { name: name === undefined ? [] : [name], points: POINTS }
      const params = { path: { job_id: job.id }, query }
      // One that has begun is let finish: for so little, giving up costs more than it saves.
      const page = await lanes.run(() => data(api.GET("/jobs/{job_id}/metrics", { params })), signal)
      return page.items.map(({ value }) => value).filter((value) => value !== null)
    },
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  })
}

/** Go on with a trail that is kept: by what the event stream tells, with no request. */
export function goOn(client: QueryClient, id: number, progress: Progress): void {
  const name = mainMetric(progress)
  const value = name === undefined ? undefined : progress.values[name]
  if (value === null || value === undefined) return
  const queryKey = trailKey(id, name)
  // One that is to be read anew has a hole; a value behind it would have it pass for whole.
  if (client.getQueryState(queryKey)?.isInvalidated) return
  client.setQueryData<number[]>(queryKey, (values) =>
    values === undefined || values.at(-1) === value ? values : [...values, value].slice(-POINTS),
  )
}

/** Keep no trail: none goes on while the list of jobs is left. */
export function dropTrails(client: QueryClient): void {
  client.removeQueries({ queryKey: TRAILS })
}

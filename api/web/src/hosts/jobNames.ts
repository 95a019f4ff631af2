/** The jobs that have devices, as their tiles name them. */
import { queryOptions } from "@tanstack/react-query"

import { api, data } from "../api/client"
import { keys } from "../api/queries"
import type { Job } from "../api/types"

export type NamedJob = Pick<Job, "id" | "name" | "state" | "user">

/** By id; the newest thousand. It is read anew with the hosts: whoever begins or ends changes both. */
export function jobNamesQuery() {
  return queryOptions({
    queryKey: [...keys.hosts, "job names"],
    queryFn: async ({ signal }): Promise<Record<number, NamedJob>> => {
      const query = { state: ["starting" as const, "running" as const], size: 1000, fields: "id,name,state,user" }
      const { items } = await data(api.GET("/jobs", { params: { query }, signal }))
      return Object.fromEntries(items.map((job) => [job.id, job]))
    },
  })
}

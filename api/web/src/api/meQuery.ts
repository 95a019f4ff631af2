/** Who is asking. */
import { queryOptions } from "@tanstack/react-query"

import { api, data } from "./client"
import { keys } from "./queries"

export function meQuery() {
  return queryOptions({
    queryKey: keys.me,
    queryFn: ({ signal }) => data(api.GET("/me", { signal })),
    staleTime: Number.POSITIVE_INFINITY,
  })
}

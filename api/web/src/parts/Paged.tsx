/** A list that comes page by page: an error in its place, what stands for none, and a button for the next page. */
import { Button, Group } from "@mantine/core"
import type { InfiniteData, UseInfiniteQueryResult } from "@tanstack/react-query"
import type { ReactNode } from "react"

import { Empty } from "./Empty"
import { ErrorNote } from "./ErrorNote"
import { Loading } from "./Loading"

/** A page as every list of the API answers with. */
interface ListPage<T> {
  items: T[]
  next_page?: string | null
}

interface PagedProps<T> {
  query: UseInfiniteQueryResult<InfiniteData<ListPage<T>>>
  /** What it is a list of: `tokens`. */
  what: string
  /** What is said where there are none. */
  none: string
  children: (items: T[]) => ReactNode
}

export function Paged<T>({ query, what, none, children }: PagedProps<T>) {
  if (query.error && !query.data) return <ErrorNote error={query.error} onRetry={() => void query.refetch()} />
  if (!query.data) return <Loading what={what} />
  const items = query.data.pages.flatMap((page) => page.items)
  return (
    <>
      {query.error && <ErrorNote error={query.error} onRetry={() => void query.refetch()} />}
      {items.length === 0 ? <Empty title={none} /> : children(items)}
      {query.hasNextPage && (
        <Group justify="center" mt="sm">
          <Button
            variant="default"
            size="xs"
            loading={query.isFetchingNextPage}
            onClick={() => void query.fetchNextPage()}
          >
            More {what}
          </Button>
        </Group>
      )}
    </>
  )
}

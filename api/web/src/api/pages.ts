/** How a list of the API goes on, page by page. */

const FIRST: string | undefined = undefined

/** For the options of an infinite query: the cursor of its first page, and of the one after a page. */
export const byPages = {
  initialPageParam: FIRST,
  getNextPageParam: ({ next_page }: { next_page?: string | null }) => next_page ?? undefined,
}

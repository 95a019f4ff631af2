/** Lines of all of the output that have a text in them, found by the service, also where they are not loaded here. */
import { Box, Button, Group, Text } from "@mantine/core"
import { useInfiniteQuery } from "@tanstack/react-query"
import { memo, useMemo, useState } from "react"

import type { LogChunk } from "../../api/types"
import { count } from "../../format/numbers"
import { ErrorNote } from "../../parts/ErrorNote"
import { Loading } from "../../parts/Loading"
import { LineText } from "./LineText"
import classes from "./Logs.module.css"
import { patternOf, type Search } from "./matches"
import { FOUND_LINES, searched, type Part } from "./source"
import { settled } from "./terminal"

/** Of a line that was found so much is shown; the line itself has the rest. */
const SHOWN_CHARACTERS = 1_000

interface FoundProps {
  job: number
  part: Part
  search: Search
  label: (line: LogChunk) => string
  /** Show a line among the others. */
  onShow: (line: LogChunk) => Promise<void>
}

/** Drawn anew for what it shows alone, not for each line that comes. */
export const Found = memo(function Found({ job, part, search, label, onShow }: FoundProps) {
  const [shown, setShown] = useState<LogChunk>()
  const pattern = useMemo(() => patternOf(search), [search])
  const found = useInfiniteQuery({
    queryKey: ["found-in-output", job, part, search],
    queryFn: ({ pageParam, signal }) => searched(job, part, search, pageParam, signal),
    initialPageParam: 0,
    getNextPageParam: ({ items, after }) => (items.length < FOUND_LINES ? undefined : after),
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (found.error) return <ErrorNote error={found.error} onRetry={() => void found.refetch()} />
  if (!found.data) return <Loading what="what was found" />
  const lines = found.data.pages.flatMap(({ items }) => items)
  return (
    <section aria-label="Found in all of the output">
      <Group justify="space-between" mb={4}>
        <Text size="sm" role="status">
          {lines.length === 0
            ? "No line of the output has this in it"
            : `${count(lines.length)}${found.hasNextPage ? " or more" : ""} lines of all of the output have this in them`}
        </Text>
        {found.hasNextPage && (
          <Button
            variant="default"
            size="compact-xs"
            loading={found.isFetchingNextPage}
            onClick={() => void found.fetchNextPage()}
          >
            More of them
          </Button>
        )}
      </Group>
      {lines.length > 0 && (
        <Box className={classes.found} role="region" aria-label="Lines that were found" tabIndex={0}>
          <ol>
            {lines.map((line) => (
              <li key={`${line.id} ${line.offset}`}>
                <Button
                  variant="default"
                  size="compact-xs"
                  loading={shown === line}
                  disabled={shown !== undefined && shown !== line}
                  onClick={() => {
                    setShown(line)
                    void onShow(line).finally(() => setShown(undefined))
                  }}
                >
                  Show
                </Button>
                <span className={classes.gutter}>{label(line)}</span>
                <span>
                  <LineText text={settled(line.text).trimEnd().slice(0, SHOWN_CHARACTERS)} style="" pattern={pattern} />
                </span>
              </li>
            ))}
          </ol>
        </Box>
      )}
    </section>
  )
})

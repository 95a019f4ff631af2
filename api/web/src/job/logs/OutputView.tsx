/** A part of a job's output: followed, paused, searched, and read back as somebody scrolls up. */
import { Anchor, Button, Checkbox, Group, Stack, Text } from "@mantine/core"
import { useClipboard, useLocalStorage } from "@mantine/hooks"
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore, type ReactNode } from "react"
import { Link } from "wouter"

import { isOver } from "../../api/states"
import type { Job } from "../../api/types"
import { count } from "../../format/numbers"
import { useAction } from "../../keys/actions"
import { useFeed } from "../../live/useFeed"
import { ErrorNote } from "../../parts/ErrorNote"
import { Loading } from "../../parts/Loading"
import { notices } from "../../parts/notices"
import { Download } from "./Download"
import { Found } from "./Found"
import type { Line, Piece } from "./lines"
import { patternOf } from "./matches"
import { MOST_LINES, Output } from "./output"
import { Region, type RegionHandle } from "./Region"
import { SearchField } from "./SearchField"
import { sourceOf, type Part } from "./source"
import { plain } from "./terminal"
import { useSearch } from "./useSearch"

interface OutputViewProps {
  job: Job
  part: Part
  /** Whether there are several ranks, or attempts, among the lines. */
  hasRanks: boolean
  hasAttempts: boolean
  /** Where the part is chosen; it stands before the search. */
  children: ReactNode
}

export function OutputView({ job, part, hasRanks, hasAttempts, children }: OutputViewProps) {
  const [output] = useState(() => new Output(sourceOf(job.id, part)))
  const live = useSyncExternalStore(output.subscribe, output.get)
  const hasEnded = isOver(job)
  useFeed({
    topics: ["logs"],
    jobs: hasEnded ? [] : [job.id],
    onNews: (news) => {
      if (news.topic === "logs") output.take(news.data.items.filter((piece) => isOf(part, piece)))
    },
    onShow: () => void output.show(),
  })
  // No stream is held for a job that has ended; one that has just ended may have more to tell than its stream did.
  useEffect(() => {
    if (hasEnded) void output.show()
  }, [output, hasEnded])
  useEffect(() => () => output.close(), [output])

  /** Key of the last line that is shown while it is paused. */
  const [pausedAt, setPausedAt] = useState<number>()
  const lines = useMemo(() => upToKey(live.lines, pausedAt), [live.lines, pausedAt])
  const waiting = live.lines.length - lines.length

  const [look, setLook] = useLocalStorage({ key: "rankzero.logs", defaultValue: { isWrapped: false, hasTimes: false } })
  const region = useRef<RegionHandle>(null)
  const [isFollowing, setFollowing] = useState(true)
  const follow = () => {
    setPausedAt(undefined)
    region.current?.toEnd()
  }

  const { search, setSearch } = useSearch(output)
  const pattern = useMemo(() => (search.text === "" ? null : patternOf(search)), [search])
  const [current, setCurrent] = useState<number>()
  const [isSearchingAll, setSearchingAll] = useState(false)
  const field = useRef<HTMLInputElement>(null)
  const focusSearch = () => field.current?.select()
  useAction({ id: "search output", title: "Search the output", section: "This page", keys: "/", run: focusSearch })

  const matches = useMemo(
    () => (pausedAt === undefined ? live.matches : live.matches.filter((key) => key <= pausedAt)),
    [live.matches, pausedAt],
  )
  const position = current === undefined ? -1 : matches.indexOf(current)
  const goTo = useCallback((key: number) => {
    setCurrent(key)
    region.current?.toLine(key)
  }, [])
  const step = (direction: 1 | -1) => {
    const from = position >= 0 ? current : region.current?.firstSeen()
    if (from === undefined) return
    const next = direction === 1 ? matches.find((key) => key > from) : matches.findLast((key) => key < from)
    // From the last one on to the first, and back.
    const key = next ?? matches.at(direction === 1 ? 0 : -1)
    if (key !== undefined) goTo(key)
  }
  const showFound = useCallback(
    async (piece: Piece) => {
      setPausedAt(undefined)
      const key = await output.reach(piece.id, piece.text)
      // Once the lines that were loaded for it are in the page.
      if (key !== undefined) setTimeout(() => goTo(key))
      // What went wrong with the loading is said in its own place.
      else if (output.get().error === null)
        notices.failed(`That line is more than ${count(MOST_LINES)} lines up: download the output.`)
    },
    [output, goTo],
  )
  const label = useCallback(
    (line: Pick<Piece, "attempt" | "rank">) => labelOf(line, { hasRanks, hasAttempts }),
    [hasRanks, hasAttempts],
  )
  return (
    <Stack gap="xs">
      <Group gap="xs" align="end">
        {children}
        <SearchField
          ref={field}
          search={search}
          matches={matches.length}
          position={position >= 0 ? position + 1 : undefined}
          isSearchingAll={isSearchingAll}
          onChange={(changed) => {
            setCurrent(undefined)
            setSearch(changed)
          }}
          onStep={step}
          onSearchAll={setSearchingAll}
        />
      </Group>
      {isSearchingAll && search.text !== "" && (
        <Found job={job.id} part={part} search={search} label={label} onShow={showFound} />
      )}
      <Group gap="xs" justify="space-between">
        <Group gap="xs">
          {pausedAt === undefined ? (
            <Button variant="default" size="xs" onClick={() => setPausedAt(lines.at(-1)?.key ?? -1)}>
              Pause
            </Button>
          ) : (
            <Button variant="default" size="xs" onClick={() => setPausedAt(undefined)}>
              Go on ({count(waiting)} new)
            </Button>
          )}
          <Button variant="default" size="xs" disabled={isFollowing && pausedAt === undefined} onClick={follow}>
            Follow
          </Button>
          <CopyLines lines={lines} />
          <Download job={job.id} part={part} />
        </Group>
        <Group gap="sm">
          <Checkbox
            label="Times"
            size="xs"
            checked={look.hasTimes}
            onChange={(event) => setLook({ ...look, hasTimes: event.currentTarget.checked })}
          />
          <Checkbox
            label="Wrap lines"
            size="xs"
            checked={look.isWrapped}
            onChange={(event) => setLook({ ...look, isWrapped: event.currentTarget.checked })}
          />
        </Group>
      </Group>
      {live.error && <ErrorNote error={live.error} onRetry={() => void output.show()} />}
      <Region
        ref={region}
        lines={lines}
        widest={live.widest}
        current={current}
        pattern={pattern}
        isWrapped={look.isWrapped}
        hasTimes={look.hasTimes}
        label={hasRanks || hasAttempts ? label : null}
        isPaused={pausedAt !== undefined}
        onFollowing={setFollowing}
        onBegin={() => void output.earlier()}
        onSearch={focusSearch}
      >
        {live.isLoading ? (
          <Loading what="output" />
        ) : (
          <Text size="sm" p="md">
            {hasEnded ? "Nothing was printed." : "Nothing was printed yet. Lines are shown as they come."} What a recipe
            tells of its work is in the{" "}
            <Anchor component={Link} href={`/jobs/${job.id}/timeline`} size="sm" underline="always">
              timeline
            </Anchor>
            .
          </Text>
        )}
      </Region>
      <Text size="xs" c="dimmed">
        {count(lines.length)} lines.{" "}
        {live.isLoadingEarlier
          ? "Earlier ones are being loaded…"
          : live.isFull
            ? "Earlier ones are not kept here: download the output, or search all of it."
            : live.hasEarlier && "Earlier ones are loaded as you scroll up."}
        {live.dropped > 0 && ` The oldest ${count(live.dropped)} of them were dropped.`}
        {pausedAt !== undefined && " Paused: what comes is kept."}
      </Text>
    </Stack>
  )
}

function CopyLines({ lines }: { lines: readonly Line[] }) {
  const clipboard = useClipboard()
  return (
    <Button
      variant="default"
      size="xs"
      disabled={lines.length === 0}
      onClick={() => clipboard.copy(lines.map(({ text }) => plain(text)).join("\n"))}
    >
      {clipboard.error ? "The browser refused" : clipboard.copied ? "Copied" : "Copy these lines"}
    </Button>
  )
}

function isOf({ rank, attempt }: Part, piece: Piece): boolean {
  return (rank === undefined || piece.rank === rank) && (attempt === undefined || piece.attempt === attempt)
}

/** Keys go up by one from line to line. */
function upToKey(lines: readonly Line[], key: number | undefined): readonly Line[] {
  if (key === undefined) return lines
  return lines.slice(0, Math.max(0, key - (lines[0]?.key ?? 0) + 1))
}

function labelOf({ rank, attempt }: Pick<Piece, "attempt" | "rank">, has: { hasRanks: boolean; hasAttempts: boolean }) {
  const words: string[] = []
  if (has.hasAttempts) words.push(`attempt ${attempt}`)
  if (has.hasRanks || !has.hasAttempts) words.push(`rank ${rank}`)
  return words.join(" ")
}

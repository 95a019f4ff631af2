/** Why a job, or one of its attempts, failed: cause, first failing rank, traceback, the last that it printed. */
import { Anchor, Box, Text, Title } from "@mantine/core"
import { useId } from "react"
import { Link } from "wouter"

import type { Failure } from "../../api/types"
import { causeInWords } from "../../format/reasons"
import { adviceOn } from "./advice"
import classes from "./FailurePanel.module.css"
import { endOf, plainText, repeats } from "./printed"

interface FailurePanelProps {
  jobId: number
  failure: Failure
  /** The attempt that failed, where it is known. */
  attempt: number | undefined
  /** Whether the whole job has failed; else a later attempt is on its way. */
  isFinal: boolean
}

export function FailurePanel({ jobId, failure, attempt, isFinal }: FailurePanelProps) {
  const heading = useId()
  const { cause, message, rank, traceback } = failure
  const logTail = failure.log_tail ? plainText(failure.log_tail) : ""
  const logs = new URLSearchParams()
  if (rank !== null && rank !== undefined) logs.set("rank", String(rank))
  if (attempt !== undefined) logs.set("attempt", String(attempt))
  const source = rank === null || rank === undefined ? "its launcher" : `rank ${rank}`
  return (
    <section aria-labelledby={heading} className={classes.panel} data-final={isFinal}>
      <Title order={2} size="h4" id={heading}>
        {isFinal ? "Failed: " : `Attempt ${attempt ?? ""} failed: `}
        {causeInWords(cause)}
      </Title>
      <Text size="sm" className={classes.message}>
        {message}
      </Text>
      <Text size="sm" mt={4}>
        Cause <code>{cause}</code>
        {rank !== null && rank !== undefined && <>, first on rank {rank}</>}
        {". "}
        <Anchor
          component={Link}
          href={`/jobs/${jobId}/logs${logs.size > 0 ? `?${logs.toString()}` : ""}`}
          size="sm"
          underline="always"
        >
          Log of {source}
        </Anchor>
      </Text>
      {isFinal && (
        <Text size="sm" mt={4}>
          What to do: {adviceOn(cause)}
        </Text>
      )}
      {traceback && (
        <Printed
          title={cause === "hang" ? "Where it stood" : "Traceback"}
          text={plainText(traceback)}
          isOpen={logTail === "" || repeats(logTail, traceback) || cause === "exception" || cause === "hang"}
        />
      )}
      {logTail !== "" && (
        <Printed title={`Last lines of ${source}`} text={logTail} isOpen={!traceback || !repeats(logTail, traceback)} />
      )}
    </section>
  )
}

function Printed({ title, text, isOpen }: { title: string; text: string; isOpen: boolean }) {
  return (
    <details
      open={isOpen}
      className={classes.details}
      onToggle={({ currentTarget }) => toEnd(currentTarget.querySelector("pre"))}
    >
      <summary>{title}</summary>
      {/* A region that scrolls must be reachable by keyboard. */}
      <Box component="pre" ref={toEnd} role="region" aria-label={title} tabIndex={0} className={classes.printed}>
        {endOf(text)}
      </Box>
    </details>
  )
}

/** What was raised stands in the last line. */
function toEnd(printed: HTMLPreElement | null): void {
  if (printed) printed.scrollTop = printed.scrollHeight
}

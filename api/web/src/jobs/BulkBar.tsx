/** What can be done with all selected jobs at once. */
import { Button, TextInput } from "@mantine/core"
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { Link } from "wouter"

import { isOver } from "../api/states"
import type { Job } from "../api/types"
import { change, keepJobs, tell, verbsFor, type Verb } from "../api/verbs"
import { MOST_LINES } from "../charts/palette"
import { count } from "../format/numbers"
import { useAction } from "../keys/actions"
import { Confirm } from "../parts/Confirm"
import { notices } from "../parts/notices"
import { useRights } from "../session/rights"
import { doToAll, failuresInWords, jobsInWords } from "./bulk"
import classes from "./Jobs.module.css"

interface BulkBarProps {
  selected: ReadonlySet<number>
  /** The jobs that are loaded; of a selected one that is not among them nothing is known here. */
  jobs: readonly Job[]
  onClear: () => void
  /** These were told something, and are as they answered. */
  onDone: (jobs: readonly Job[]) => void
}

export function BulkBar({ selected, jobs, onClear, onDone }: BulkBarProps) {
  const { maySubmit } = useRights()
  const ids = [...selected]
  const loaded = new Set(jobs.map(({ id }) => id))
  const unseen = ids.filter((id) => !loaded.has(id)).length
  const compared = ids.slice(0, MOST_LINES)
  useAction({ id: "clear selection", title: "Select no jobs", section: "Jobs", run: onClear })
  return (
    <section className={classes.bulk} aria-label="Selected jobs">
      <span role="status">
        {jobsInWords(ids.length)} selected{unseen > 0 && `, ${count(unseen)} of them not shown here`}
      </span>
      {ids.length > 1 && (
        <Button component={Link} href={`/compare?jobs=${compared.join(",")}`} size="compact-sm" variant="default">
          {compared.length < ids.length ? `Compare the first ${MOST_LINES}` : "Compare"}
        </Button>
      )}
      {maySubmit && <Verbs ids={ids} jobs={jobs} onDone={onDone} />}
      <Button size="compact-sm" variant="default" onClick={onClear}>
        Clear selection
      </Button>
    </section>
  )
}

interface Task {
  /** `Cancel`, for what was refused. */
  title: string
  /** `are told to end`, behind the number of jobs. */
  words: string
  ids: readonly number[]
  act: (id: number) => Promise<Job>
}

const KEY = ["bulk"]

interface VerbsProps {
  ids: readonly number[]
  jobs: readonly Job[]
  onDone: (jobs: readonly Job[]) => void
}

function Verbs({ ids, jobs, onDone }: VerbsProps) {
  const client = useQueryClient()
  const [isAsked, setAsked] = useState(false)
  const { mutate: start, isPending } = useMutation({
    mutationKey: KEY,
    mutationFn: ({ ids, act }: Task) => doToAll(ids, act),
    onSuccess: (outcome, { title, words }) => {
      keepJobs(client, outcome.done)
      onDone(outcome.done)
      if (outcome.failed.length > 0) notices.failed(failuresInWords(title, outcome))
      else notices.done(`${jobsInWords(outcome.done.length)} ${words}`)
    },
  })
  // A second press may come before the first of them is drawn.
  const mutate = (task: Task) => {
    if (client.isMutating({ mutationKey: KEY }) === 0) start(task)
  }
  const known = new Map(jobs.map((job) => [job.id, job]))
  /** Those for which the verb means something, or of which nothing is known here. */
  const fit = (verb: Verb) => {
    return ids.filter((id) => {
      const job = known.get(id)
      return job === undefined || verbsFor(job).includes(verb)
    })
  }
  const [toCancel, toPause, toResume] = [fit("cancel"), fit("pause"), fit("resume")]
  const pause = () => mutate({ title: "Pause", words: "told to pause", ids: toPause, act: (id) => tell("pause", id) })
  const resume = () =>
    mutate({ title: "Resume", words: "told to go on", ids: toResume, act: (id) => tell("resume", id) })
  const running = toCancel.filter((id) => known.get(id)?.state === "running").length
  const canCancel = toCancel.length > 0
  useAction({
    id: "cancel selected",
    title: "Cancel the selected jobs",
    section: "Jobs",
    enabled: canCancel,
    run: () => setAsked(true),
  })
  useAction({
    id: "pause selected",
    title: "Pause the selected jobs",
    section: "Jobs",
    enabled: toPause.length > 0,
    run: pause,
  })
  return (
    <>
      <Button size="compact-sm" variant="default" disabled={!canCancel || isPending} onClick={() => setAsked(true)}>
        Cancel
      </Button>
      <Button size="compact-sm" variant="default" disabled={toPause.length === 0 || isPending} onClick={pause}>
        Pause
      </Button>
      <Button size="compact-sm" variant="default" disabled={toResume.length === 0 || isPending} onClick={resume}>
        Resume
      </Button>
      <Priority
        isBusy={isPending}
        onSet={(priority) =>
          mutate({
            title: "Priority",
            words: `given priority ${priority}`,
            ids: ids.filter((id) => {
              const job = known.get(id)
              return job === undefined || !isOver(job)
            }),
            act: (id) => change(id, { priority }),
          })
        }
      />
      <Confirm
        opened={isAsked}
        title={`Cancel ${jobsInWords(toCancel.length)}?`}
        verb={`Cancel ${jobsInWords(toCancel.length)}`}
        onConfirm={() => {
          setAsked(false)
          mutate({ title: "Cancel", words: "told to end", ids: toCancel, act: (id) => tell("cancel", id) })
        }}
        onClose={() => setAsked(false)}
      >
        {running > 0 ? `${jobsInWords(running)} of them ${running === 1 ? "is" : "are"} running. ` : ""}A cancelled job
        can not be resumed. What it has saved stays.
      </Confirm>
    </>
  )
}

function Priority({ isBusy, onSet }: { isBusy: boolean; onSet: (priority: number) => void }) {
  return (
    <form
      className={classes.priority}
      onSubmit={(event) => {
        event.preventDefault()
        onSet(Number(new FormData(event.currentTarget).get("priority")))
      }}
    >
      <TextInput
        size="xs"
        type="number"
        name="priority"
        aria-label="Priority from 0 to 100"
        placeholder="Priority"
        required
        min={0}
        max={100}
        step={1}
        w={90}
      />
      <Button type="submit" size="compact-sm" variant="default" disabled={isBusy}>
        Set priority
      </Button>
    </form>
  )
}

/** The buttons that tell one job what to do: those that mean something for it as it is. */
import { Button } from "@mantine/core"
import { useState } from "react"

import type { Job } from "../api/types"
import { useVerb, verbsFor, type Verb } from "../api/verbs"
import { Confirm } from "./Confirm"

const WORDS: Record<Verb, string> = { cancel: "Cancel", pause: "Pause", resume: "Resume", retry: "Retry" }

/** For whoever may change the job; ask `useRights` first. */
export function JobVerbs({ job }: { job: Job }) {
  const [isAsked, setAsked] = useState(false)
  const { mutate, isPending, variables } = useVerb()
  return (
    <>
      {verbsFor(job).map((verb) => (
        <Button
          key={verb}
          variant="default"
          size="xs"
          loading={isPending && variables.verb === verb}
          onClick={() => (verb === "cancel" ? setAsked(true) : mutate({ verb, id: job.id }))}
        >
          {WORDS[verb]}
        </Button>
      ))}
      <ConfirmCancel
        job={job}
        opened={isAsked}
        onConfirm={() => mutate({ verb: "cancel", id: job.id })}
        onClose={() => setAsked(false)}
      />
    </>
  )
}

/** Asks before a job is cancelled, and says what that costs. */
export function ConfirmCancel({
  job,
  opened,
  onConfirm,
  onClose,
}: {
  job: Job
  opened: boolean
  onConfirm: () => void
  onClose: () => void
}) {
  return (
    <Confirm
      opened={opened}
      title={`Cancel job ${job.id}?`}
      verb="Cancel the job"
      onConfirm={() => {
        onClose()
        onConfirm()
      }}
      onClose={onClose}
    >
      {job.state === "queued" || job.state === "paused"
        ? `${job.name} ends now and can not be resumed.`
        : `${job.name} is stopped and can not be resumed. What it has saved stays.`}
    </Confirm>
  )
}

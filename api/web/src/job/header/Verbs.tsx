/** Everything that can be done with a job from its page: as buttons, and in the palette. */
import { Button } from "@mantine/core"
import { useState } from "react"
import { Link, useLocation } from "wouter"

import type { Job } from "../../api/types"
import { verbsFor, type Verb } from "../../api/verbs"
import { useAction } from "../../keys/actions"
import { Confirm } from "../../parts/Confirm"
import { useRights } from "../../session/rights"
import { ChangeDialog } from "./ChangeDialog"
import { ResumeElsewhere } from "./ResumeElsewhere"
import { useVerb } from "./useVerb"

const WORDS: Record<Verb, string> = { cancel: "Cancel", pause: "Pause", resume: "Resume", retry: "Retry" }

type Dialog = "cancel" | "elsewhere" | "change"

export function Verbs({ job }: { job: Job }) {
  const rights = useRights()
  const [dialog, setDialog] = useState<Dialog | null>(null)
  const { onVerb: tell, pending } = useVerb()
  const mayChange = rights.mayChange(job)
  const verbs = mayChange ? verbsFor(job) : []
  const onVerb = (verb: Verb) => (verb === "cancel" ? setDialog("cancel") : tell(verb, job.id))
  const close = () => setDialog(null)
  const canGoElsewhere = mayChange && job.state === "paused" && job.intent !== "cancel"

  return (
    <>
      {verbs.map((verb) => (
        <Button key={verb} variant="default" size="xs" loading={pending === verb} onClick={() => onVerb(verb)}>
          {WORDS[verb]}
        </Button>
      ))}
      {canGoElsewhere && (
        <Button size="xs" variant="default" onClick={() => setDialog("elsewhere")}>
          Resume elsewhere…
        </Button>
      )}
      {mayChange && (
        <Button size="xs" variant="default" onClick={() => setDialog("change")}>
          Priority and labels…
        </Button>
      )}
      {rights.maySubmit && (
        <Button size="xs" variant="default" component={Link} href={clonePath(job)}>
          Clone and edit
        </Button>
      )}
      <Button size="xs" variant="default" component={Link} href={comparePath(job)}>
        Compare with…
      </Button>

      <Actions job={job} verbs={verbs} onVerb={onVerb} onDialog={setDialog} canGoElsewhere={canGoElsewhere} />
      <Confirm
        opened={dialog === "cancel" && verbs.includes("cancel")}
        title={`Cancel job ${job.id}?`}
        verb="Cancel the job"
        onConfirm={() => {
          close()
          tell("cancel", job.id)
        }}
        onClose={close}
      >
        {job.state === "queued" || job.state === "paused"
          ? `${job.name} ends now and can not be resumed.`
          : `${job.name} is stopped and can not be resumed. What it has saved stays.`}
      </Confirm>
      {dialog === "elsewhere" && <ResumeElsewhere job={job} onClose={close} />}
      {dialog === "change" && <ChangeDialog job={job} onClose={close} />}
    </>
  )
}

interface ActionsProps {
  job: Job
  /** Those that are offered. */
  verbs: readonly Verb[]
  canGoElsewhere: boolean
  onVerb: (verb: Verb) => void
  onDialog: (dialog: Dialog) => void
}

/** The same for the palette. */
function Actions({ job, verbs, canGoElsewhere, onVerb, onDialog }: ActionsProps) {
  const rights = useRights()
  const [, go] = useLocation()
  const mayChange = rights.mayChange(job)
  const section = "This page"
  const offered = (verb: Verb, title: string) => ({
    id: `${verb} this job`,
    title,
    section,
    enabled: verbs.includes(verb),
    run: () => onVerb(verb),
  })
  useAction({ ...offered("pause", "Pause this job"), section })
  useAction({ ...offered("resume", "Resume this job"), section })
  useAction({ ...offered("retry", "Retry this job"), section })
  useAction({ ...offered("cancel", "Cancel this job"), section })
  useAction({
    id: "resume this job elsewhere",
    title: "Resume this job elsewhere",
    section,
    enabled: canGoElsewhere,
    run: () => onDialog("elsewhere"),
  })
  useAction({
    id: "change this job",
    title: "Change this job's priority or labels",
    section,
    enabled: mayChange,
    run: () => onDialog("change"),
  })
  useAction({
    id: "clone this job",
    title: "Clone and edit this job",
    section,
    enabled: rights.maySubmit,
    run: () => go(clonePath(job)),
  })
  useAction({ id: "compare this job", title: "Compare this job with others", section, run: () => go(comparePath(job)) })
  return null
}

function clonePath({ id }: Job): string {
  return `/jobs/new?clone=${id}`
}

function comparePath({ id }: Job): string {
  return `/compare?jobs=${id}`
}

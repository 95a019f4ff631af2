/** Everything that can be done with a job from its page: as buttons, and in the palette. */
import { Button } from "@mantine/core"
import { useState } from "react"
import { Link, useLocation } from "wouter"

import type { Job } from "../../api/types"
import { useVerb, verbsFor, type Verb } from "../../api/verbs"
import { useAction } from "../../keys/actions"
import { ConfirmCancel, JobVerbs } from "../../parts/JobVerbs"
import { useRights } from "../../session/rights"
import { ChangeDialog } from "./ChangeDialog"
import { ResumeElsewhere } from "./ResumeElsewhere"

type Dialog = "cancel" | "elsewhere" | "change"

export function Verbs({ job }: { job: Job }) {
  const rights = useRights()
  const [dialog, setDialog] = useState<Dialog | null>(null)
  const { mutate } = useVerb()
  const mayChange = rights.mayChange(job)
  const close = () => setDialog(null)
  const canGoElsewhere = mayChange && job.state === "paused" && job.intent !== "cancel"

  return (
    <>
      {mayChange && <JobVerbs job={job} />}
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

      <Actions
        job={job}
        onVerb={(verb) => (verb === "cancel" ? setDialog("cancel") : mutate({ verb, id: job.id }))}
        onDialog={setDialog}
        canGoElsewhere={canGoElsewhere}
      />
      <ConfirmCancel
        job={job}
        opened={dialog === "cancel"}
        onConfirm={() => mutate({ verb: "cancel", id: job.id })}
        onClose={close}
      />
      {dialog === "elsewhere" && <ResumeElsewhere job={job} onClose={close} />}
      {dialog === "change" && <ChangeDialog job={job} onClose={close} />}
    </>
  )
}

interface ActionsProps {
  job: Job
  canGoElsewhere: boolean
  onVerb: (verb: Verb) => void
  onDialog: (dialog: Dialog) => void
}

/** The same for the palette. */
function Actions({ job, canGoElsewhere, onVerb, onDialog }: ActionsProps) {
  const rights = useRights()
  const [, go] = useLocation()
  const mayChange = rights.mayChange(job)
  const verbs = mayChange ? verbsFor(job) : []
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

/** A new job: written from nothing, or as a clone of another (`?clone=7`, from a checkpoint of it: `&checkpoint=9`). */
import { Anchor, Text } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useMemo, useState } from "react"
import { Link, useSearchParams } from "wouter"

import { jobIdIn } from "../api/jobId"
import { jobQuery } from "../api/queries"
import type { Job } from "../api/types"
import { Empty } from "../parts/Empty"
import { ErrorNote } from "../parts/ErrorNote"
import { Loading } from "../parts/Loading"
import { PageTitle } from "../parts/PageTitle"
import { useRights } from "../session/rights"
import { specOf, startingFrom } from "./clones"
import { JobForm } from "./JobForm"
import { KeptDraft } from "./keptDraft"
import { jobFieldsQuery } from "./queries"
import type { Field } from "./schemas"

export default function NewJobPage() {
  const rights = useRights()
  const [query] = useSearchParams()
  const clone = query.get("clone")
  const cloned = clone === null ? null : jobIdIn(clone)
  return (
    <>
      <PageTitle
        title={clone === null ? "New job" : `New job like job ${clone}`}
        documentTitle={clone === null ? "New job" : `Clone of job ${clone}`}
      />
      {!rights.maySubmit ? (
        <Empty title="Your role cannot submit jobs">
          <Text size="sm">You are here as {rights.me.role}; it takes the role submitter, which an admin gives.</Text>
        </Empty>
      ) : clone !== null && cloned === null ? (
        <Empty title={`There is no job ${clone}`}>
          <Anchor component={Link} href="/jobs/new">
            Write a new one
          </Anchor>
        </Empty>
      ) : (
        // Another job to clone is another form.
        <Ready key={query.toString()} clone={cloned} query={query} />
      )}
    </>
  )
}

/** Waits for what the form is made of. */
function Ready({ clone, query }: { clone: number | null; query: URLSearchParams }) {
  const fields = useQuery(jobFieldsQuery())
  const job = useQuery({ ...jobQuery(clone ?? 0), enabled: clone !== null })
  const error = fields.error ?? job.error
  if (error) return <ErrorNote error={error} onRetry={() => void (fields.error ? fields : job).refetch()} />
  if (!fields.data || (clone !== null && !job.data)) return <Loading what="the form" />
  return <Begun fields={fields.data} job={job.data ?? null} query={query} />
}

/** The form begins with the job as it is now: what becomes of that one later changes nothing here. */
function Begun({ fields, job, query }: { fields: readonly Field[]; job: Job | null; query: URLSearchParams }) {
  const { me, isAdmin } = useRights()
  const [parent] = useState(() => job && { job, spec: specOf(job, fields) })
  const [first] = useState(() => {
    if (!parent) return { train: {} }
    return startingFrom({ parent, checkpoint: query.get("checkpoint"), mode: query.get("mode"), me, isAdmin })
  })
  const kept = useMemo(() => new KeptDraft(me.user, query.toString()), [me.user, query])
  return <JobForm fields={fields} first={first} parent={parent} kept={kept} />
}

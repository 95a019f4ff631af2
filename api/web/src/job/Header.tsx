/** What stands above every tab of a job: its name and state. */
import type { Job } from "../api/types"
import { PageTitle } from "../parts/PageTitle"
import { StateBadge } from "../parts/StateBadge"

export function Header({ job }: { job: Job }) {
  return (
    <PageTitle
      title={
        <>
          {job.name} #{job.id} <StateBadge state={job.state} />
        </>
      }
      documentTitle={`${job.state} · ${job.name} #${job.id}`}
    />
  )
}

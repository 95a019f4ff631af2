/** What matters most of a job at one look. */
import type { Job } from "../../api/types"
import { Empty } from "../../parts/Empty"

export function OverviewTab({ job }: { job: Job }) {
  return <Empty title={`Job ${job.id}`} />
}

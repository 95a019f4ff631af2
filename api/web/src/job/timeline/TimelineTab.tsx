import type { Job } from "../../api/types"
import { Empty } from "../../parts/Empty"

export default function TimelineTab({ job }: { job: Job }) {
  return <Empty title={`Timeline of job ${job.id}`} />
}

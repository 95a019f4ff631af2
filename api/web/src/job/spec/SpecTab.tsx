import type { Job } from "../../api/types"
import { Empty } from "../../parts/Empty"

export default function SpecTab({ job }: { job: Job }) {
  return <Empty title={`Spec of job ${job.id}`} />
}

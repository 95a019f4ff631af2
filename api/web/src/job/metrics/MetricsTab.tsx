import type { Job } from "../../api/types"
import { Empty } from "../../parts/Empty"

export default function MetricsTab({ job }: { job: Job }) {
  return <Empty title={`Metrics of job ${job.id}`} />
}

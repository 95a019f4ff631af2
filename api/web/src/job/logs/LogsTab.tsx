import type { Job } from "../../api/types"
import { Empty } from "../../parts/Empty"

export default function LogsTab({ job }: { job: Job }) {
  return <Empty title={`Logs of job ${job.id}`} />
}

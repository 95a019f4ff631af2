import type { Job } from "../../api/types"
import { Empty } from "../../parts/Empty"

export default function CheckpointsTab({ job }: { job: Job }) {
  return <Empty title={`Checkpoints of job ${job.id}`} />
}

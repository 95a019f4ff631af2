/** Tells the job of the page to do something, and says in words what it came to. */
import { useMutation, useQueryClient } from "@tanstack/react-query"

import { isOver } from "../../api/states"
import type { Job } from "../../api/types"
import { keepJobs, tell, type Verb } from "../../api/verbs"
import { notices } from "../../parts/notices"

const KEY = ["verb"]

export function useVerb() {
  const client = useQueryClient()
  const { mutate, isPending, variables } = useMutation({
    mutationKey: KEY,
    mutationFn: ({ verb, id }: { verb: Verb; id: number }) => tell(verb, id),
    onSuccess: (job, { verb }) => {
      keepJobs(client, [job])
      notices.done(outcomeOf(verb, job))
    },
    onError: (error, { id }) => notices.failed(`Job ${id}: ${error.message}`),
  })
  // A second press may come before the first of them is drawn.
  const onVerb = (verb: Verb, id: number) => {
    if (client.isMutating({ mutationKey: KEY }) === 0) mutate({ verb, id })
  }
  return { onVerb, pending: isPending ? variables.verb : null }
}

/** What a verb has come to, in words. */
export function outcomeOf(verb: Verb, job: Pick<Job, "id" | "state">): string {
  switch (verb) {
    case "cancel":
      return isOver(job) ? `Job ${job.id} is ${job.state}` : `Job ${job.id} ends within seconds`
    case "pause":
      return job.state === "paused" ? `Job ${job.id} is paused` : `Job ${job.id} saves a checkpoint, then pauses`
    case "resume":
      return job.state === "queued" ? `Job ${job.id} is in the line again` : `Job ${job.id} goes on`
    case "retry":
      return `Job ${job.id} is in the line again, with all of its retries`
  }
}

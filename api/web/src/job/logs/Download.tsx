/** Downloads output as a text file: by a plain link, or where a token is asked for, which a link can't send, by a request. */
import { Button, Group } from "@mantine/core"
import { useMutation } from "@tanstack/react-query"

import { addressOf, askFor } from "../../api/client"
import { notices } from "../../parts/notices"
import { save } from "../../parts/saving"
import { useRights } from "../../session/rights"
import { downloadPath, type Part } from "./source"

export function Download({ job, part }: { job: number; part: Part }) {
  const isPart = part.rank !== undefined || part.attempt !== undefined
  return (
    <Group gap="xs">
      {isPart && <DownloadButton job={job} part={part} text="Download this part" />}
      <DownloadButton job={job} part={{}} text={isPart ? "Download all" : "Download"} />
    </Group>
  )
}

function DownloadButton({ job, part, text }: { job: number; part: Part; text: string }) {
  const { asksForTokens } = useRights()
  const path = downloadPath(job, part)
  const fetched = useMutation({
    mutationFn: async () => (await askFor(path)).blob(),
    onSuccess: (blob) => save(blob, nameOf(job, part)),
    onError: (error) => notices.failed(`The output was not downloaded: ${error.message}`),
  })
  if (!asksForTokens) {
    return (
      <Button component="a" href={addressOf(path)} download variant="default" size="xs">
        {text}
      </Button>
    )
  }
  return (
    <Button variant="default" size="xs" loading={fetched.isPending} onClick={() => fetched.mutate()}>
      {text}
    </Button>
  )
}

/** As the service names the file. */
function nameOf(job: number, { rank, attempt }: Part): string {
  const parts = [`job-${job}`]
  if (attempt !== undefined) parts.push(`attempt-${attempt}`)
  if (rank !== undefined) parts.push(`rank-${rank}`)
  return `${parts.join("-")}.log`
}

/** Output of a job's ranks: which rank and attempt, and below that the lines. */
import { NativeSelect } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"

import { attemptsQuery } from "../../api/queries"
import type { Job } from "../../api/types"
import { useAddress } from "../../parts/address"
import { OutputView } from "./OutputView"
import type { Part } from "./source"

export default function LogsTab({ job }: { job: Job }) {
  const { params, change } = useAddress()
  const attempts = useQuery(attemptsQuery(job.id)).data ?? []
  const part: Part = { rank: numberOf(params.get("rank")), attempt: numberOf(params.get("attempt")) }
  const choose = (name: "rank" | "attempt", value: string) => change({ [name]: value }, { isStep: true })

  const chosen = attempts.filter(({ number }) => part.attempt === undefined || number === part.attempt)
  const ranks = Math.max(1, (part.rank ?? 0) + 1, ...chosen.map(({ world_size }) => world_size))
  const newest = Math.max(1, part.attempt ?? 1, ...attempts.map(({ number }) => number))
  return (
    // Another part is read anew, with nothing kept.
    <OutputView
      key={`${part.rank ?? ""} ${part.attempt ?? ""}`}
      job={job}
      part={part}
      hasRanks={part.rank === undefined && ranks > 1}
      hasAttempts={part.attempt === undefined && newest > 1}
    >
      <NativeSelect
        label="Rank"
        size="xs"
        value={part.rank ?? ""}
        data={[
          { value: "", label: "All ranks" },
          ...upTo(ranks).map((rank) => ({ value: String(rank), label: `Rank ${rank}` })),
        ]}
        onChange={(event) => choose("rank", event.currentTarget.value)}
      />
      <NativeSelect
        label="Attempt"
        size="xs"
        value={part.attempt ?? ""}
        data={[
          { value: "", label: "All attempts" },
          ...upTo(newest).map((index) => ({ value: String(index + 1), label: `Attempt ${index + 1}` })),
        ]}
        onChange={(event) => choose("attempt", event.currentTarget.value)}
      />
    </OutputView>
  )
}

function upTo(many: number): number[] {
  return Array.from({ length: many }, (_, index) => index)
}

/** What a person wrote into the address counts where it is a number, and a part of it stays away otherwise. */
function numberOf(text: string | null): number | undefined {
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : undefined
}

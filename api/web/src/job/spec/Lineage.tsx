/** From which job and checkpoint a job comes, and which ones come from it. */
import { Anchor, Button, Text } from "@mantine/core"
import { useInfiniteQuery, useQuery } from "@tanstack/react-query"
import { Link } from "wouter"

import { api, data } from "../../api/client"
import { byPages } from "../../api/pages"
import { jobQuery, keys } from "../../api/queries"
import type { Job } from "../../api/types"
import { StateBadge } from "../../parts/StateBadge"
import { Facts, type Fact } from "../Facts"
import classes from "./Lineage.module.css"

const PAGE = 50

export function Lineage({ job }: { job: Job }) {
  const facts: Fact[] = []
  if (job.parent_id !== null) facts.push({ name: "Comes from", value: <Ancestor id={job.parent_id} /> })
  const start = startOf(job)
  if (start !== null) facts.push({ name: "Starts from", value: start })
  facts.push({ name: "Come from it", value: <Children id={job.id} /> })
  return <Facts facts={facts} />
}

/** The checkpoint that it starts from, and whether it goes on there or takes only the weights. */
function startOf(job: Job) {
  const asked = job.spec.start_from
  if (job.parent_checkpoint_id === null && (typeof asked !== "object" || asked === null)) return null
  const mode =
    asked && typeof asked === "object" && "mode" in asked && asked.mode === "resume" ? "goes on there" : "its weights"
  const from =
    asked && typeof asked === "object" && "job" in asked && typeof asked.job === "number" ? asked.job : job.parent_id
  const which = job.parent_checkpoint_id === null ? "a checkpoint" : `checkpoint ${job.parent_checkpoint_id}`
  return (
    <>
      {which}
      {from !== null && (
        <>
          {" of "}
          <Anchor component={Link} href={`/jobs/${from}/checkpoints`} size="sm" underline="always">
            job {from}
          </Anchor>
        </>
      )}
      , {mode}
    </>
  )
}

function Ancestor({ id }: { id: number }) {
  const { data: parent } = useQuery(jobQuery(id))
  return parent ? <JobLine job={parent} /> : <>job {id}</>
}

function Children({ id }: { id: number }) {
  const found = useInfiniteQuery({
    queryKey: [...keys.jobs, "children", id],
    queryFn: async ({ pageParam, signal }) => {
      const query = { parent: id, size: PAGE, cursor: pageParam }
      return data(api.GET("/jobs", { params: { query }, signal }))
    },
    ...byPages,
  })
  const jobs = found.data?.pages.flatMap(({ items }) => items) ?? []
  if (found.error) return found.error.message
  if (found.data && jobs.length === 0) return "none"
  return (
    <>
      <ul className={classes.jobs}>
        {jobs.map((job) => (
          <li key={job.id}>
            <JobLine job={job} />
          </li>
        ))}
      </ul>
      {found.hasNextPage && (
        <Button
          size="compact-xs"
          variant="default"
          loading={found.isFetching}
          onClick={() => void found.fetchNextPage()}
        >
          Show more
        </Button>
      )}
    </>
  )
}

function JobLine({ job }: { job: Job }) {
  return (
    <Text size="sm" component="span">
      <Anchor component={Link} href={`/jobs/${job.id}`} size="sm" underline="always">
        #{job.id} {job.name}
      </Anchor>{" "}
      <StateBadge state={job.state} />
    </Text>
  )
}

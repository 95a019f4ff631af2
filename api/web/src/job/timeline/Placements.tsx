/** On which hosts and devices an attempt is or was. */
import { Anchor } from "@mantine/core"
import { Link } from "wouter"

import type { Attempt } from "../../api/types"
import { Mark } from "../../parts/Mark"

type Placement = Attempt["placements"][number]

export function Placements({ placements }: { placements: readonly Placement[] }) {
  return (
    <>
      {placements.map(({ node_rank, host, devices }) => (
        <div key={node_rank}>
          {devices.map(({ name }) => name).join(", ")} on{" "}
          <Anchor component={Link} href={`/hosts#${encodeURIComponent(host)}`} size="sm" underline="always">
            {host}
          </Anchor>{" "}
          {devices.some(({ simulated }) => simulated) && <Mark>simulated</Mark>}
        </div>
      ))}
    </>
  )
}

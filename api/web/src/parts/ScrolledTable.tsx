/** A wide table in a region of its own that scrolls, so that the page does not. */
import { Box, Table } from "@mantine/core"
import type { ReactNode } from "react"

import { useSettings } from "../settings/settings"

export function ScrolledTable({ label, children }: { label: string; children: ReactNode }) {
  const { density } = useSettings()
  return (
    // A region that scrolls must be reachable by keyboard.
    <Box role="region" aria-label={label} tabIndex={0} style={{ overflowX: "auto" }}>
      <Table
        verticalSpacing={density === "compact" ? 3 : 7}
        horizontalSpacing="sm"
        styles={{ th: { whiteSpace: "nowrap" } }}
      >
        {children}
      </Table>
    </Box>
  )
}

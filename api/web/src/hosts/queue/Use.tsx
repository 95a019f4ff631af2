/** Who holds how many devices and has used how much lately, with the quotas that limit it. */
import { Table, Text } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"

import { count, figure } from "../../format/numbers"
import { duration } from "../../format/times"
import { ErrorNote } from "../../parts/ErrorNote"
import { Loading } from "../../parts/Loading"
import { ScrolledTable } from "../../parts/ScrolledTable"
import { quotasQuery } from "./queries"
import { rowsOf } from "./shares"

export function Use() {
  const quotas = useQuery(quotasQuery())
  if (quotas.data === undefined) {
    return quotas.error ? <ErrorNote error={quotas.error} /> : <Loading what="the use of devices" />
  }
  const rows = rowsOf(quotas.data)
  if (rows.length === 0) return <Text size="sm">Nobody has used a device yet, and there are no quotas.</Text>
  return (
    <ScrolledTable label="Use of devices and quotas">
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">Who</Table.Th>
          <Table.Th scope="col">Holds now</Table.Th>
          <Table.Th scope="col">At most</Table.Th>
          <Table.Th scope="col">Share</Table.Th>
          <Table.Th scope="col">Used lately</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map(({ name, holds, most, share, used_s }) => (
          <Table.Tr key={name}>
            <Table.Th scope="row" fw={400}>
              {name}
            </Table.Th>
            <Table.Td>{holds === null ? "–" : count(holds)}</Table.Td>
            <Table.Td>{most === null ? "no limit" : count(most)}</Table.Td>
            <Table.Td>{figure(share)}</Table.Td>
            <Table.Td>{used_s === null ? "–" : `${duration(used_s)} of a device`}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </ScrolledTable>
  )
}

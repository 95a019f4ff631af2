/** All keys that do something here. */
import { Modal, Table } from "@mantine/core"

import { useAction, useActions } from "./actions"
import { Keys } from "./Palette"

export function KeyList({ opened, onOpen, onClose }: { opened: boolean; onOpen: () => void; onClose: () => void }) {
  useAction({ id: "keys", title: "Show the keys", section: "Help", keys: "?", run: onOpen })
  const bound = useActions().filter(({ keys }) => keys !== undefined)
  return (
    <Modal opened={opened} onClose={onClose} title="Keys" closeButtonProps={{ "aria-label": "Close" }}>
      <Table aria-label="Keys">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Key</Table.Th>
            <Table.Th>Does</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {bound.map(({ id, title, keys }) => (
            <Table.Tr key={id}>
              <Table.Td>{keys && <Keys keys={keys} />}</Table.Td>
              <Table.Td>{title}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Modal>
  )
}

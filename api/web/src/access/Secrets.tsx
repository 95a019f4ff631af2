/** Secrets that jobs may name: which there are, storing one, and forgetting it. Nobody reads one back. */
import { Button, Group, Stack, Table, Text, Textarea, TextInput, Title } from "@mantine/core"
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"

import { api, data } from "../api/client"
import type { Secret } from "../api/types"
import { Confirm } from "../parts/Confirm"
import { ErrorNote } from "../parts/ErrorNote"
import { notices } from "../parts/notices"
import { Paged } from "../parts/Paged"
import { ScrolledTable } from "../parts/ScrolledTable"
import { Ago } from "../parts/Time"
import { useRights } from "../session/rights"
import { accessKeys, secretsQuery } from "./queries"

export function Secrets() {
  const { isAdmin } = useRights()
  const secrets = useInfiniteQuery(secretsQuery())
  return (
    <section>
      <Title order={2} size="h4" mb="xs">
        Secrets
      </Title>
      <Text size="sm" c="dimmed" mb="sm" maw={720}>
        A job names a secret by the variable that is to hold it, and its program finds it there. What a secret holds is
        shown to nobody.
      </Text>
      {isAdmin && <NewSecret />}
      <Paged query={secrets} what="secrets" none="No secrets so far">
        {(items) => <SecretTable secrets={items} />}
      </Paged>
    </section>
  )
}

function NewSecret() {
  const client = useQueryClient()
  const [name, setName] = useState("")
  const [value, setValue] = useState("")
  const put = useMutation({
    mutationFn: () => data(api.PUT("/secrets/{name}", { params: { path: { name } }, body: { value } })),
    onSuccess: (secret) => {
      setName("")
      setValue("")
      notices.done(`Secret ${secret.name} is stored. Runs that start from now on are given it.`)
      void client.invalidateQueries({ queryKey: accessKeys.secrets })
    },
  })
  return (
    <form
      autoComplete="off"
      onSubmit={(event) => {
        event.preventDefault()
        put.mutate()
      }}
    >
      <Stack gap="xs" mb="md" maw={480}>
        <TextInput
          label="Name"
          description="One that there is already is stored anew"
          size="xs"
          required
          maxLength={128}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <Textarea
          label="What it holds"
          size="xs"
          required
          rows={2}
          spellCheck={false}
          value={value}
          onChange={(event) => setValue(event.currentTarget.value)}
        />
        {put.error && <ErrorNote error={put.error} />}
        <Button type="submit" size="xs" style={{ alignSelf: "start" }} loading={put.isPending}>
          Store secret
        </Button>
      </Stack>
    </form>
  )
}

function SecretTable({ secrets }: { secrets: Secret[] }) {
  const { isAdmin } = useRights()
  const client = useQueryClient()
  const [removed, setRemoved] = useState<Secret>()
  const remove = useMutation({
    mutationFn: (name: string) => api.DELETE("/secrets/{name}", { params: { path: { name } } }),
    onSuccess: (_, name) => notices.done(`Secret ${name} is forgotten.`),
    onError: (error) => notices.failed(error.message),
    onSettled: () => {
      setRemoved(undefined)
      void client.invalidateQueries({ queryKey: accessKeys.secrets })
    },
  })
  return (
    <>
      <ScrolledTable label="Secrets">
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">Name</Table.Th>
            <Table.Th scope="col">Stored</Table.Th>
            <Table.Th scope="col">Stored last</Table.Th>
            <Table.Th scope="col">By</Table.Th>
            {isAdmin && <Table.Th scope="col">Change</Table.Th>}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {secrets.map((secret) => (
            <Table.Tr key={secret.name}>
              <Table.Th scope="row" fw={500}>
                {secret.name}
              </Table.Th>
              <Table.Td>
                <Ago at={secret.created_at} />
              </Table.Td>
              <Table.Td>
                <Ago at={secret.updated_at} />
              </Table.Td>
              <Table.Td>{secret.updated_by ?? "–"}</Table.Td>
              {isAdmin && (
                <Table.Td>
                  <Group gap={6}>
                    <Button
                      variant="default"
                      size="compact-xs"
                      aria-label={`Remove ${secret.name}`}
                      onClick={() => setRemoved(secret)}
                    >
                      Remove
                    </Button>
                  </Group>
                </Table.Td>
              )}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </ScrolledTable>
      <Confirm
        opened={removed !== undefined}
        title={`Remove the secret ${removed?.name ?? ""}?`}
        verb="Remove"
        isBusy={remove.isPending}
        onConfirm={() => {
          if (removed) remove.mutate(removed.name)
        }}
        onClose={() => setRemoved(undefined)}
      >
        Nobody can show again what it holds, and a job that names it fails when it starts.
      </Confirm>
    </>
  )
}

/** Users: adding them, their roles, and disabling them. */
import { Button, Group, NativeSelect, Table, TextInput, Title } from "@mantine/core"
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { Link } from "wouter"

import { api, data } from "../api/client"
import type { Role, User } from "../api/types"
import { Confirm } from "../parts/Confirm"
import { ErrorNote } from "../parts/ErrorNote"
import { notices } from "../parts/notices"
import { Paged } from "../parts/Paged"
import { ScrolledTable } from "../parts/ScrolledTable"
import { Ago } from "../parts/Time"
import { useRights } from "../session/rights"
import { accessKeys, usersQuery } from "./queries"
import { isRole, ROLES } from "./roles"
import { questionBefore, type Question, type UserChange } from "./userChange"

export function Users() {
  const users = useInfiniteQuery(usersQuery())
  return (
    <section>
      <Title order={2} size="h4" mb="xs">
        Users
      </Title>
      <NewUser />
      <Paged query={users} what="users" none="No users so far">
        {(items) => <UserTable users={items} />}
      </Paged>
    </section>
  )
}

function NewUser() {
  const client = useQueryClient()
  const [name, setName] = useState("")
  const [role, setRole] = useState<Role>("submitter")
  const add = useMutation({
    mutationFn: () => data(api.POST("/users", { body: { name, role } })),
    onSuccess: (user) => {
      setName("")
      notices.done(`${user.name} is added. They can sign in once they have a token.`)
      void client.invalidateQueries({ queryKey: accessKeys.users })
    },
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        add.mutate()
      }}
    >
      <Group align="end" gap="xs" mb="sm">
        <TextInput
          label="Name of a new user"
          size="xs"
          required
          maxLength={128}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <RoleSelect label="Role" value={role} onChange={setRole} />
        <Button type="submit" size="xs" loading={add.isPending}>
          Add user
        </Button>
      </Group>
      {add.error && <ErrorNote error={add.error} />}
    </form>
  )
}

function UserTable({ users }: { users: User[] }) {
  const client = useQueryClient()
  const { me } = useRights()
  /** What was asked about last: it stays on the screen while its dialog closes. */
  const [asked, setAsked] = useState<{ user: User; change: UserChange; question: Question }>()
  const [isAsking, setIsAsking] = useState(false)
  const change = useMutation({
    mutationFn: ({ name, ...body }: UserChange & { name: string }) =>
      data(api.PATCH("/users/{name}", { params: { path: { name } }, body })),
    onSuccess: (user) => {
      notices.done(user.disabled_at === null ? `${user.name} is ${user.role}.` : `${user.name} is disabled.`)
    },
    onError: (error) => notices.failed(error.message),
    onSettled: () => {
      setIsAsking(false)
      void client.invalidateQueries({ queryKey: accessKeys.users })
    },
  })
  const begin = (user: User, wanted: UserChange) => {
    const question = questionBefore(user, wanted, me.user)
    if (question) {
      setAsked({ user, change: wanted, question })
      setIsAsking(true)
    } else change.mutate({ name: user.name, ...wanted })
  }
  return (
    <>
      <ScrolledTable label="Users">
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">Name</Table.Th>
            <Table.Th scope="col">Role</Table.Th>
            <Table.Th scope="col">Added</Table.Th>
            <Table.Th scope="col">State</Table.Th>
            <Table.Th scope="col">Change</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {users.map((user) => (
            <Table.Tr key={user.name}>
              <Table.Th scope="row" fw={500}>
                {user.name}
              </Table.Th>
              <Table.Td>
                <RoleSelect
                  ariaLabel={`Role of ${user.name}`}
                  value={user.role}
                  disabled={change.isPending}
                  onChange={(role) => begin(user, { role })}
                />
              </Table.Td>
              <Table.Td>
                <Ago at={user.created_at} />
              </Table.Td>
              <Table.Td>
                {user.disabled_at === null ? (
                  "counts"
                ) : (
                  <>
                    disabled <Ago at={user.disabled_at} />
                  </>
                )}
              </Table.Td>
              <Table.Td>
                <Group gap={6} wrap="nowrap">
                  <Button
                    component={Link}
                    href={`/access?${new URLSearchParams({ section: "tokens", user: user.name }).toString()}`}
                    variant="default"
                    size="compact-xs"
                    aria-label={`Tokens of ${user.name}`}
                  >
                    Tokens
                  </Button>
                  <Button
                    variant="default"
                    size="compact-xs"
                    aria-label={user.disabled_at === null ? `Disable ${user.name}` : `Enable ${user.name}`}
                    onClick={() => begin(user, { disabled: user.disabled_at === null })}
                  >
                    {user.disabled_at === null ? "Disable" : "Enable"}
                  </Button>
                </Group>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </ScrolledTable>
      <Confirm
        opened={isAsking}
        title={asked?.question.title ?? ""}
        verb={asked?.question.verb ?? ""}
        isBusy={change.isPending}
        onConfirm={() => {
          if (asked) change.mutate({ name: asked.user.name, ...asked.change })
        }}
        onClose={() => setIsAsking(false)}
      >
        {asked?.question.text}
      </Confirm>
    </>
  )
}

interface RoleSelectProps {
  label?: string
  ariaLabel?: string
  value: Role
  disabled?: boolean
  onChange: (role: Role) => void
}

function RoleSelect({ label, ariaLabel, value, disabled, onChange }: RoleSelectProps) {
  return (
    <NativeSelect
      label={label}
      aria-label={ariaLabel}
      size="xs"
      w={120}
      value={value}
      disabled={disabled}
      data={[...ROLES]}
      onChange={(event) => {
        if (isRole(event.currentTarget.value)) onChange(event.currentTarget.value)
      }}
    />
  )
}

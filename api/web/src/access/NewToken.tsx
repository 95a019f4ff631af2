/** The form for a new token. */
import { Button, Group, Modal, NativeSelect, Stack, TextInput } from "@mantine/core"
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"

import { api, data } from "../api/client"
import type { ShownToken } from "../api/types"
import { ErrorNote } from "../parts/ErrorNote"
import { useRights } from "../session/rights"
import { accessKeys, usersQuery } from "./queries"
import { isRole, ROLES } from "./roles"

interface NewTokenProps {
  opened: boolean
  onMade: (token: ShownToken) => void
  onClose: () => void
}

const DAY_MS = 86_400_000
const LASTS = [
  { value: "30", label: "30 days" },
  { value: "7", label: "7 days" },
  { value: "90", label: "90 days" },
  { value: "365", label: "A year" },
  { value: "", label: "Until it is revoked" },
]

export function NewToken({ opened, onMade, onClose }: NewTokenProps) {
  return (
    <Modal opened={opened} onClose={onClose} title="New token" centered closeButtonProps={{ "aria-label": "Close" }}>
      <Form onMade={onMade} onClose={onClose} />
    </Modal>
  )
}

function Form({ onMade, onClose }: Omit<NewTokenProps, "opened">) {
  const rights = useRights()
  const client = useQueryClient()
  const users = useInfiniteQuery({ ...usersQuery(), enabled: rights.isAdmin })
  const names = users.data?.pages.flatMap(({ items }) => items.map(({ name }) => name)) ?? []
  const [name, setName] = useState("")
  const [user, setUser] = useState(rights.me.user ?? "")
  const [role, setRole] = useState("")
  const [days, setDays] = useState("30")
  const make = useMutation({
    mutationFn: () =>
      data(
        api.POST("/tokens", {
          body: {
            name,
            ...(user !== "" && user !== rights.me.user ? { user } : {}),
            ...(isRole(role) ? { role } : {}),
            ...(days === "" ? {} : { expires_at: new Date(Date.now() + Number(days) * DAY_MS).toISOString() }),
          },
        }),
      ),
    onSuccess: (token) => {
      void client.invalidateQueries({ queryKey: accessKeys.tokens })
      onMade(token)
    },
  })
  const isOwn = user === rights.me.user
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        make.mutate()
      }}
    >
      <Stack gap="sm">
        <TextInput
          label="Name"
          description="What it is for: the machine, or the pipeline"
          required
          maxLength={255}
          data-autofocus
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        {rights.isAdmin && (
          <NativeSelect
            label="User"
            required
            value={user}
            data={[
              ...(rights.me.user === null ? [{ value: "", label: "Choose a user" }] : []),
              ...new Set([...(rights.me.user === null ? [] : [rights.me.user]), ...names]),
            ]}
            onChange={(event) => setUser(event.currentTarget.value)}
          />
        )}
        <NativeSelect
          label="Role"
          description="The most that it allows; never more than its user may"
          value={role}
          data={[
            { value: "", label: isOwn ? "All that I may" : "All that the user may" },
            ...ROLES.filter((each) => rights.has(each)),
          ]}
          onChange={(event) => setRole(event.currentTarget.value)}
        />
        <NativeSelect
          label="It counts for"
          value={days}
          data={LASTS}
          onChange={(event) => setDays(event.currentTarget.value)}
        />
        {make.error && <ErrorNote error={make.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={make.isPending}>
            Make it
          </Button>
        </Group>
      </Stack>
    </form>
  )
}

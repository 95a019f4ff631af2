/** Tokens: one's own or everybody's, making one, and having one count no more. */
import { Button, Group, NativeSelect, Table, Title } from "@mantine/core"
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { useSearchParams } from "wouter"

import { api } from "../api/client"
import type { ShownToken, Token } from "../api/types"
import { useNow } from "../format/now"
import { Confirm } from "../parts/Confirm"
import { Mark } from "../parts/Mark"
import { notices } from "../parts/notices"
import { Paged } from "../parts/Paged"
import { ScrolledTable } from "../parts/ScrolledTable"
import { ShownOnce } from "../parts/ShownOnce"
import { Ago, At } from "../parts/Time"
import { useRights } from "../session/rights"
import { NewToken } from "./NewToken"
import { accessKeys, tokensQuery, usersQuery } from "./queries"

/** Stands for everybody in the address; no user can have this name. */
const EVERYBODY = "*"

export function Tokens() {
  const rights = useRights()
  const [params, setParams] = useSearchParams()
  const whose = params.get("user") ?? rights.me.user ?? EVERYBODY
  const tokens = useInfiniteQuery(tokensQuery(whose === EVERYBODY ? undefined : whose))
  const [isMaking, setMaking] = useState(false)
  const [made, setMade] = useState<ShownToken>()
  const [revoked, setRevoked] = useState<Token>()
  return (
    <section>
      <Group justify="space-between" align="end" mb="xs">
        <Title order={2} size="h4">
          Tokens
        </Title>
        <Group align="end" gap="xs">
          {rights.isAdmin && <WhoseTokens whose={whose} onChange={(user) => setParams({ section: "tokens", user })} />}
          <Button size="xs" onClick={() => setMaking(true)}>
            New token
          </Button>
        </Group>
      </Group>
      <Paged query={tokens} what="tokens" none="No tokens so far">
        {(items) => <TokenTable tokens={items} onRevoke={setRevoked} />}
      </Paged>
      <NewToken
        opened={isMaking}
        onMade={(token) => {
          setMaking(false)
          setMade(token)
        }}
        onClose={() => setMaking(false)}
      />
      <ShownOnce
        what="token"
        title={`Token “${made?.name ?? ""}” of ${made?.user ?? ""}`}
        text={made?.token}
        onClose={() => setMade(undefined)}
      />
      {revoked && <Revoke token={revoked} onClose={() => setRevoked(undefined)} />}
    </section>
  )
}

function WhoseTokens({ whose, onChange }: { whose: string; onChange: (user: string) => void }) {
  const { me } = useRights()
  const users = useInfiniteQuery(usersQuery()).data?.pages.flatMap(({ items }) => items) ?? []
  const names = new Set([...(me.user === null ? [] : [me.user]), ...users.map(({ name }) => name)])
  if (whose !== EVERYBODY) names.add(whose)
  return (
    <NativeSelect
      label="Whose"
      size="xs"
      value={whose}
      data={[
        { value: EVERYBODY, label: "Everybody's" },
        ...[...names].map((name) => ({ value: name, label: name === me.user ? `${name} (you)` : name })),
      ]}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  )
}

function TokenTable({ tokens, onRevoke }: { tokens: Token[]; onRevoke: (token: Token) => void }) {
  const { me } = useRights()
  const now = useNow(10_000)
  return (
    <ScrolledTable label="Tokens">
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">Name</Table.Th>
          <Table.Th scope="col">User</Table.Th>
          <Table.Th scope="col">Role</Table.Th>
          <Table.Th scope="col">State</Table.Th>
          <Table.Th scope="col">Made</Table.Th>
          <Table.Th scope="col">Last used</Table.Th>
          <Table.Th scope="col">Expires</Table.Th>
          <Table.Th scope="col">Change</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {tokens.map((token) => (
          <Table.Tr key={token.id}>
            <Table.Th scope="row" fw={500}>
              {token.name} {token.id === me.token_id && <Mark>this one</Mark>}
            </Table.Th>
            <Table.Td>{token.user}</Table.Td>
            <Table.Td>{token.role}</Table.Td>
            <Table.Td>{stateOf(token, now)}</Table.Td>
            <Table.Td>
              <Ago at={token.created_at} />
            </Table.Td>
            <Table.Td>{token.last_used_at ? <Ago at={token.last_used_at} /> : "never"}</Table.Td>
            <Table.Td>{token.expires_at ? <At at={token.expires_at} /> : "never"}</Table.Td>
            <Table.Td>
              {stateOf(token, now) === "counts" && (
                <Button
                  variant="default"
                  size="compact-xs"
                  aria-label={`Revoke ${token.name} of ${token.user}`}
                  onClick={() => onRevoke(token)}
                >
                  Revoke
                </Button>
              )}
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </ScrolledTable>
  )
}

/** Whether a token counts at a time; `now` in milliseconds. */
export function stateOf({ revoked_at, expires_at }: Pick<Token, "revoked_at" | "expires_at">, now: number) {
  if (revoked_at !== null) return "revoked"
  return expires_at !== null && new Date(expires_at).getTime() <= now ? "expired" : "counts"
}

function Revoke({ token, onClose }: { token: Token; onClose: () => void }) {
  const { me } = useRights()
  const client = useQueryClient()
  const revoke = useMutation({
    mutationFn: () => api.DELETE("/tokens/{token_id}", { params: { path: { token_id: token.id } } }),
    onSuccess: () => {
      notices.done(`Token “${token.name}” counts no more.`)
      void client.invalidateQueries({ queryKey: accessKeys.tokens })
    },
    onError: (error) => notices.failed(error.message),
    onSettled: onClose,
  })
  return (
    <Confirm
      opened
      title={`Revoke “${token.name}” of ${token.user}?`}
      verb="Revoke"
      isBusy={revoke.isPending}
      onConfirm={() => revoke.mutate()}
      onClose={onClose}
    >
      {token.id === me.token_id
        ? "This is the token that you are signed in with: you will be signed out."
        : "Whatever uses it is refused from its next request on. It can't be given back."}
    </Confirm>
  )
}

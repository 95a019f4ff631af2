/** Who may use the service: oneself, tokens, users, secrets, and what everybody did. */
import { SegmentedControl, Stack, Text } from "@mantine/core"
import { useSearchParams } from "wouter"

import { PageTitle } from "../parts/PageTitle"
import { useRights } from "../session/rights"
import { Audit } from "./Audit"
import { MAY } from "./roles"
import { Secrets } from "./Secrets"
import { Tokens } from "./Tokens"
import { Users } from "./Users"

const SECTIONS = { tokens: Tokens, users: Users, secrets: Secrets, audit: Audit } as const
const TITLES: Record<Section, string> = { tokens: "Tokens", users: "Users", secrets: "Secrets", audit: "Audit" }

type Section = keyof typeof SECTIONS

export default function AccessPage() {
  const rights = useRights()
  const [params, setParams] = useSearchParams()
  const offered: Section[] = rights.isAdmin
    ? ["tokens", "users", "secrets", "audit"]
    : rights.maySubmit
      ? ["tokens", "secrets"]
      : ["tokens"]
  const section = offered.find((each) => each === params.get("section")) ?? "tokens"
  const Shown = SECTIONS[section]
  return (
    <>
      <PageTitle title="Access" documentTitle="Access" />
      <Stack>
        <WhoIsAsking />
        {offered.length > 1 && (
          <SegmentedControl
            aria-label="Section"
            style={{ alignSelf: "start" }}
            value={section}
            data={offered.map((each) => ({ value: each, label: TITLES[each] }))}
            // The filters of one section mean nothing in another.
            onChange={(chosen) => setParams({ section: chosen })}
          />
        )}
        <Shown />
      </Stack>
    </>
  )
}

function WhoIsAsking() {
  const { me } = useRights()
  if (me.access === "loopback") {
    return (
      <Text size="sm" maw={720}>
        This service listens on its own machine alone, and asks nobody there for a token: whoever uses it may do
        anything. Users and tokens count once it listens on another address, or with RANKZERO_ACCESS=tokens.
      </Text>
    )
  }
  return (
    <Text size="sm" maw={720}>
      You are <b>{me.user}</b>, with the role <b>{me.role}</b>: you may {MAY[me.role]}. You are signed in with token{" "}
      {me.token_id}.
    </Text>
  )
}

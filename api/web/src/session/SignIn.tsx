/** The form for a token. */
import { Alert, Button, Center, Checkbox, Code, Paper, PasswordInput, Stack, Text, Title } from "@mantine/core"
import { useState } from "react"

import { token } from "./token"

export function SignIn({ wasRefused }: { wasRefused: boolean }) {
  const [value, setValue] = useState("")
  const [keep, setKeep] = useState(false)
  return (
    <Center component="main" mih="100vh" p="md">
      <Paper withBorder p="xl" w="100%" maw={440}>
        <form
          onSubmit={(event) => {
            event.preventDefault()
            if (value.trim() !== "") token.signIn(value.trim(), { keep })
          }}
        >
          <Stack>
            <Title order={1} size="h2">
              Sign in to RankZero
            </Title>
            {wasRefused && (
              <Alert color="red" role="alert" title="This token does not count">
                It is unknown, expired or revoked, or its user is disabled.
              </Alert>
            )}
            <PasswordInput
              label="Token"
              description="It begins with rz_"
              autoComplete="current-password"
              required
              data-autofocus
              value={value}
              onChange={(event) => setValue(event.currentTarget.value)}
            />
            <Checkbox
              label="Keep me signed in on this browser"
              checked={keep}
              onChange={(event) => setKeep(event.currentTarget.checked)}
            />
            <Button type="submit">Sign in</Button>
            <Text size="sm" c="dimmed">
              An admin makes tokens here or with <Code>rankzero token create</Code>.
            </Text>
          </Stack>
        </form>
      </Paper>
    </Center>
  )
}

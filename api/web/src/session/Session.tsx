/** Lets nobody through before it is known who asks: shows the form for a token where the service wants one. */
import { Center, Loader } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useMemo, type ReactNode } from "react"

import { meQuery } from "../api/meQuery"
import { isPassing, ProblemError } from "../api/problems"
import { asksForTokens } from "../place"
import { ErrorNote } from "../parts/ErrorNote"
import { Rights, RightsContext } from "./rights"
import { SignIn } from "./SignIn"
import { token } from "./token"

/** It is made anew for each token (`app/App.tsx`), and with it everything that was answered to the one before. */
export function Session({ children }: { children: ReactNode }) {
  // Without a token it would be refused for certain.
  const needsToken = asksForTokens && token.value === null
  const me = useQuery({ ...meQuery(), enabled: !needsToken, retry: (_, error) => isPassing(error), retryDelay: 1000 })
  const rights = useMemo(() => me.data && new Rights(me.data), [me.data])

  if (rights) return <RightsContext value={rights}>{children}</RightsContext>
  if (needsToken || (me.error instanceof ProblemError && me.error.status === 401)) {
    return <SignIn wasRefused={token.wasRefused} />
  }
  const error = me.error ?? me.failureReason
  return (
    <Center component="main" mih="100vh" p="md">
      {error ? <ErrorNote error={error} onRetry={() => void me.refetch()} /> : <Loader aria-label="Loading" />}
    </Center>
  )
}

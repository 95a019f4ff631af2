/** The whole page: what surrounds every part of it. */
import { localStorageColorSchemeManager, MantineProvider } from "@mantine/core"
import { QueryClient, QueryClientProvider } from "@tanstack/react-query"
import { useState, useSyncExternalStore } from "react"
import { Router } from "wouter"

import { isPassing } from "../api/problems"
import { LiveProvider } from "../live/LiveProvider"
import { NoticeList } from "../parts/NoticeList"
import { dashboardPath } from "../place"
import { Session } from "../session/Session"
import { token } from "../session/token"
import { Failed } from "./Failed"
import { Shell } from "./Shell"
import { theme, variables } from "./theme"

const colorSchemes = localStorageColorSchemeManager({ key: "rankzero.colours" })

export function App() {
  const signedInAs = useSyncExternalStore(token.subscribe, () => token.value)
  return (
    <MantineProvider
      theme={theme}
      cssVariablesResolver={variables}
      defaultColorScheme="auto"
      colorSchemeManager={colorSchemes}
    >
      <Failed>
        {/* Made anew for another token: what one user was answered is not for the next. */}
        <Signed key={signedInAs ?? ""} />
        <NoticeList />
      </Failed>
    </MantineProvider>
  )
}

function Signed() {
  const [client] = useState(newClient)
  return (
    <QueryClientProvider client={client}>
      <Session>
        <LiveProvider>
          <Router base={dashboardPath}>
            <Shell />
          </Router>
        </LiveProvider>
      </Session>
    </QueryClientProvider>
  )
}

function newClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        // What is refused once is refused again; a service that is away comes back, and the page with it.
        retry: (_, error) => isPassing(error),
        retryDelay: (failures) => Math.min(500 * 2 ** failures, 5_000),
        // The browser's word on whether it is online says nothing of a service on the same machine.
        networkMode: "always",
        staleTime: 2_000,
        refetchOnWindowFocus: true,
      },
      mutations: { networkMode: "always" },
    },
  })
}

/** What surrounds every page: navigation, the state of the connection, the palette and the keys. */
import { AppShell, Burger, Button, Group, NavLink, Text, UnstyledButton, VisuallyHidden } from "@mantine/core"
import { Suspense, useEffect, useRef, useState } from "react"
import { Link, useLocation } from "wouter"

import { useAction } from "../keys/actions"
import { KeyList } from "../keys/KeyList"
import { Palette } from "../keys/Palette"
import { useKeys } from "../keys/useKeys"
import { Loading } from "../parts/Loading"
import { useRights } from "../session/rights"
import { token } from "../session/token"
import { ConnectionBadge } from "./ConnectionBadge"
import { Failed } from "./Failed"
import { Routes } from "./routes"
import classes from "./Shell.module.css"

interface Place {
  path: string
  title: string
  keys: string
}

export function Shell() {
  useKeys()
  const [location] = useLocation()
  const [navOpened, setNavOpened] = useState(false)
  const [dialog, setDialog] = useState<"palette" | "keys" | null>(null)
  const places = usePlaces()
  const here = places.findLast(({ path }) => location.startsWith(path))
  const close = () => setDialog(null)
  const main = useFocusOnNewPage(location)

  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 180, breakpoint: "sm", collapsed: { mobile: !navOpened } }}
      padding="md"
    >
      {/* No link to #content: beside <base> it would lead to another page. */}
      <UnstyledButton className={classes.skip} onClick={() => main.current?.focus()}>
        Skip to content
      </UnstyledButton>
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger
              opened={navOpened}
              onClick={() => setNavOpened(!navOpened)}
              hiddenFrom="sm"
              size="sm"
              aria-label={navOpened ? "Close navigation" : "Open navigation"}
              aria-expanded={navOpened}
            />
            <UnstyledButton component={Link} href="/jobs">
              <Text fw={700}>RankZero</Text>
            </UnstyledButton>
          </Group>
          <Group gap="sm" wrap="nowrap">
            <ConnectionBadge />
            <Button variant="default" size="xs" onClick={() => setDialog("palette")} aria-keyshortcuts="Control+K">
              Commands
            </Button>
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label="Pages">
        <AppShell.Section grow>
          {places.map(({ path, title }) => (
            <PlaceLink
              key={path}
              path={path}
              title={title}
              isHere={path === here?.path}
              onGo={() => setNavOpened(false)}
            />
          ))}
        </AppShell.Section>
        <AppShell.Section>
          <WhoAmI />
        </AppShell.Section>
      </AppShell.Navbar>
      <AppShell.Main tabIndex={-1} ref={main} className={classes.main}>
        <Failed at={location}>
          <Suspense fallback={<Loading what="the page" />}>
            <Routes />
          </Suspense>
        </Failed>
      </AppShell.Main>
      {places.map((place) => (
        <PlaceAction key={place.path} {...place} />
      ))}
      <Palette opened={dialog === "palette"} onOpen={() => setDialog("palette")} onClose={close} />
      <KeyList opened={dialog === "keys"} onOpen={() => setDialog("keys")} onClose={close} />
    </AppShell>
  )
}

/** Who reads by ear, or goes by keyboard, begins on another page at its top; another tab of a page is no other page. */
function useFocusOnNewPage(location: string) {
  const main = useRef<HTMLElement>(null)
  const page = location.split("/").slice(0, 3).join("/")
  const before = useRef(page)
  const isGoingBack = useRef(false)
  useEffect(() => {
    const onPop = () => {
      isGoingBack.current = true
    }
    window.addEventListener("popstate", onPop)
    return () => window.removeEventListener("popstate", onPop)
  }, [])
  useEffect(() => {
    if (before.current === page) return
    before.current = page
    // Who goes back is at the place that they have left: the browser sees to that.
    if (!isGoingBack.current) window.scrollTo(0, 0)
    isGoingBack.current = false
    if (!main.current?.contains(document.activeElement)) main.current?.focus({ preventScroll: true })
  }, [page])
  return main
}

function usePlaces(): Place[] {
  const rights = useRights()
  return [
    { path: "/jobs", title: "Jobs", keys: "g j" },
    ...(rights.maySubmit ? [{ path: "/jobs/new", title: "New job", keys: "g n" }] : []),
    { path: "/compare", title: "Compare", keys: "g c" },
    { path: "/hosts", title: "Hosts", keys: "g h" },
    { path: "/access", title: "Access", keys: "g a" },
    ...(rights.isAdmin ? [{ path: "/webhooks", title: "Webhooks", keys: "g w" }] : []),
    { path: "/settings", title: "Settings", keys: "g s" },
  ]
}

function PlaceLink({ path, title, isHere, onGo }: { path: string; title: string; isHere: boolean; onGo: () => void }) {
  return (
    <NavLink
      component={Link}
      href={path}
      label={title}
      active={isHere}
      aria-current={isHere ? "page" : undefined}
      onClick={onGo}
    />
  )
}

function PlaceAction({ path, title, keys }: Place) {
  const [, go] = useLocation()
  useAction({ id: `go ${path}`, title, section: "Go to", keys, run: () => go(path) })
  return null
}

function WhoAmI() {
  const { me } = useRights()
  if (me.access !== "tokens") {
    return (
      <Text size="xs" c="dimmed" px="xs">
        This machine only, no token needed
      </Text>
    )
  }
  return (
    <Group justify="space-between" px="xs" gap={4}>
      <Text size="sm">
        <VisuallyHidden>Signed in as </VisuallyHidden>
        {me.user}{" "}
        <Text span size="xs" c="dimmed">
          {me.role}
        </Text>
      </Text>
      <Button variant="default" size="compact-xs" onClick={() => token.signOut()}>
        Sign out
      </Button>
    </Group>
  )
}

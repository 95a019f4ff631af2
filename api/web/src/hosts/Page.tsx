/** The hosts with their devices, and the plan: who runs where until when, and who comes next. */
import { Code, Text } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { Suspense } from "react"
import { useSearchParams } from "wouter"

import { hostsQuery } from "../api/queries"
import { Empty } from "../parts/Empty"
import { ErrorNote } from "../parts/ErrorNote"
import { lazyPart } from "../parts/lazyPart"
import { Loading } from "../parts/Loading"
import { PageTitle } from "../parts/PageTitle"
import { TabLinks } from "../parts/TabLinks"
import { HostsView } from "./HostsView"
import classes from "./Page.module.css"

const QueueView = lazyPart(() => import("./queue/QueueView"))

export default function HostsPage() {
  const [params] = useSearchParams()
  const isQueue = params.get("view") === "queue"
  return (
    <>
      <PageTitle title="Hosts" documentTitle={isQueue ? "Queue" : "Hosts"} />
      <div className={classes.views}>
        <TabLinks
          label="Views"
          tabs={[
            { title: "Devices", href: "/hosts", isShown: !isQueue },
            { title: "Queue", href: "/hosts?view=queue", isShown: isQueue },
          ]}
        />
      </div>
      {isQueue ? (
        <Suspense fallback={<Loading what="the queue" />}>
          <QueueView />
        </Suspense>
      ) : (
        <Devices />
      )}
    </>
  )
}

function Devices() {
  const hosts = useQuery(hostsQuery())
  if (hosts.data === undefined) {
    return hosts.error ? (
      <ErrorNote error={hosts.error} onRetry={() => void hosts.refetch()} />
    ) : (
      <Loading what="the hosts" />
    )
  }
  if (hosts.data.length === 0) {
    return (
      <Empty title="No host has registered yet">
        <Text size="sm">
          A host appears once its worker runs: <Code>python -m worker</Code>
        </Text>
      </Empty>
    )
  }
  return <HostsView hosts={hosts.data} />
}

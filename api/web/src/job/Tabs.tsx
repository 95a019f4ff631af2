/** The tabs of a job: each is a path of its own, and is loaded when it is first shown. */
import { Anchor, Button, Text } from "@mantine/core"
import { Suspense, type ComponentType } from "react"
import { Link } from "wouter"

import type { Job } from "../api/types"
import { useAddress } from "../parts/address"
import { Empty } from "../parts/Empty"
import { lazyPart } from "../parts/lazyPart"
import { Loading } from "../parts/Loading"
import { TabLinks } from "../parts/TabLinks"
import { OverviewTab } from "./overview/OverviewTab"
import type { TabPath } from "./snippets/snippets"
import { isLanguage, SnippetPanel, type Language } from "./snippets/SnippetPanel"
import classes from "./Tabs.module.css"

interface Tab {
  /** Last part of its path; empty for the one that `/jobs/7` itself shows. */
  path: TabPath
  title: string
  Content: ComponentType<{ job: Job }>
}

const TABS: readonly Tab[] = [
  { path: "", title: "Overview", Content: OverviewTab },
  { path: "metrics", title: "Metrics", Content: lazyPart(() => import("./metrics/MetricsTab")) },
  { path: "logs", title: "Logs", Content: lazyPart(() => import("./logs/LogsTab")) },
  { path: "checkpoints", title: "Checkpoints", Content: lazyPart(() => import("./checkpoints/CheckpointsTab")) },
  { path: "timeline", title: "Timeline", Content: lazyPart(() => import("./timeline/TimelineTab")) },
  { path: "spec", title: "Spec", Content: lazyPart(() => import("./spec/SpecTab")) },
]

export function Tabs({ job, tab }: { job: Job; tab: string | undefined }) {
  const shown = TABS.find(({ path }) => path === (tab ?? ""))
  const [language, setLanguage] = useLanguage()
  return (
    <>
      <div className={classes.row}>
        <TabLinks
          label="Parts of the job"
          tabs={TABS.map(({ path, title }) => ({
            title,
            href: path === "" ? `/jobs/${job.id}` : `/jobs/${job.id}/${path}`,
            isShown: path === shown?.path,
          }))}
        />
        {shown && (
          <Button
            size="xs"
            variant="default"
            aria-expanded={language !== null}
            onClick={() => setLanguage(language === null ? "cli" : null)}
          >
            As a command
          </Button>
        )}
      </div>
      {shown && language !== null && (
        <SnippetPanel job={job} tab={shown.path} language={language} onLanguage={setLanguage} />
      )}
      {shown ? <Content {...shown} job={job} /> : <NoSuchTab job={job} />}
    </>
  )
}

function Content({ title, Content, job }: Tab & { job: Job }) {
  return (
    <Suspense fallback={<Loading what={title} />}>
      <Content job={job} />
    </Suspense>
  )
}

function NoSuchTab({ job }: { job: Job }) {
  return (
    <Empty title="A job has no such tab">
      <Text size="sm">
        <Anchor component={Link} href={`/jobs/${job.id}`} underline="always">
          Overview of the job
        </Anchor>
      </Text>
    </Empty>
  )
}

/** In which language the commands are shown, by the parameter `code`; null where they are not. */
function useLanguage(): [Language | null, (language: Language | null) => void] {
  const { params, change } = useAddress()
  const named = params.get("code")
  return [isLanguage(named) ? named : null, (language) => change({ code: language })]
}

/** All jobs: found by search and state, kept as they are now, and told to end, pause or go before others together. */
import { Button } from "@mantine/core"
import { useRef } from "react"
import { Link } from "wouter"

import { count } from "../format/numbers"
import { Empty } from "../parts/Empty"
import { ErrorNote } from "../parts/ErrorNote"
import { Loading } from "../parts/Loading"
import { PageTitle } from "../parts/PageTitle"
import { useRights } from "../session/rights"
import { BulkBar } from "./BulkBar"
import classes from "./Jobs.module.css"
import { JobTable } from "./JobTable"
import { NoJobs } from "./NoJobs"
import { withoutLeaving } from "./selection"
import { Toolbar } from "./Toolbar"
import { useJobPages } from "./useJobPages"
import { useLiveJobs } from "./useLiveJobs"
import { filtersIn, isUnfiltered, useView } from "./view"

export default function JobsPage() {
  const { maySubmit } = useRights()
  const [view, setView] = useView()
  const filters = filtersIn(view)
  const { jobs, hasMore, isPending, isPlaceholderData, error, data, refetch, onReach } = useJobPages(filters)
  const onScreen = useRef({ first: 0, last: 0 })
  useLiveJobs(filters, () => {
    const shown = jobs.slice(onScreen.current.first, onScreen.current.last + 1)
    return shown.filter(({ state }) => state === "queued").map(({ id }) => id)
  })
  const isEmpty = data !== undefined && jobs.length === 0 && !hasMore && !isPlaceholderData
  return (
    <div className={classes.page}>
      <PageTitle title="Jobs" documentTitle="Jobs">
        <span className={classes.second} role="status">
          {data !== undefined &&
            !isEmpty &&
            `${count(jobs.length)}${hasMore ? "+" : ""} ${jobs.length === 1 ? "job" : "jobs"}`}
        </span>
        {maySubmit && (
          <Button component={Link} href="/jobs/new" size="xs">
            New job
          </Button>
        )}
      </PageTitle>
      <Toolbar view={view} onView={setView} />
      {view.selected.size > 0 && (
        <BulkBar
          selected={view.selected}
          jobs={jobs}
          onClear={() => setView({ selected: new Set() })}
          onDone={(done) => setView(({ selected, states }) => ({ selected: withoutLeaving(selected, done, states) }))}
        />
      )}
      {error && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {(isPending || (jobs.length === 0 && hasMore && !error)) && <Loading what="jobs" />}
      {isEmpty && isUnfiltered(view) && <NoJobs />}
      {isEmpty && !isUnfiltered(view) && (
        <Empty title="No job is like that">
          <Button variant="default" size="xs" onClick={() => setView({ states: [], search: "" }, { isStep: true })}>
            Clear filters
          </Button>
        </Empty>
      )}
      {jobs.length > 0 && (
        <JobTable
          jobs={jobs}
          hasMore={hasMore}
          isOld={isPlaceholderData}
          view={view}
          onView={setView}
          onReach={(first, last) => {
            onScreen.current = { first, last }
            onReach(last)
          }}
        />
      )}
    </div>
  )
}

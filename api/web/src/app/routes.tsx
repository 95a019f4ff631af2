/** Which page is at which path; each is loaded when it is first shown. */
import { Redirect, Route, Switch } from "wouter"

import { jobIdIn } from "../api/jobId"
import { Empty } from "../parts/Empty"
import { lazyPart } from "../parts/lazyPart"

const JobsPage = lazyPart(() => import("../jobs/Page"))
const NewJobPage = lazyPart(() => import("../newJob/Page"))
const JobPage = lazyPart(() => import("../job/Page"))
const ComparePage = lazyPart(() => import("../compare/Page"))
const HostsPage = lazyPart(() => import("../hosts/Page"))
const AccessPage = lazyPart(() => import("../access/Page"))
const WebhooksPage = lazyPart(() => import("../webhooks/Page"))
const SettingsPage = lazyPart(() => import("../settings/Page"))

export function Routes() {
  return (
    <Switch>
      <Route path="/">
        <Redirect to="/jobs" replace />
      </Route>
      <Route path="/jobs" component={JobsPage} />
      <Route path="/jobs/new" component={NewJobPage} />
      {/* One job, and one of its tabs: `/jobs/7`, `/jobs/7/logs`. Another job is another page, with nothing kept. */}
      <Route path="/jobs/:id/:tab?">
        {({ id: text, tab }) => {
          const id = jobIdIn(text)
          return id === null ? <NotFound /> : <JobPage key={id} id={id} tab={tab} />
        }}
      </Route>
      <Route path="/compare" component={ComparePage} />
      <Route path="/hosts" component={HostsPage} />
      <Route path="/access" component={AccessPage} />
      <Route path="/webhooks" component={WebhooksPage} />
      <Route path="/settings" component={SettingsPage} />
      <Route>
        <NotFound />
      </Route>
    </Switch>
  )
}

function NotFound() {
  return (
    <>
      <title>Not found · RankZero</title>
      <Empty title="There is no such page" />
    </>
  )
}

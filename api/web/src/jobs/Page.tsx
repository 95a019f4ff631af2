import { PageTitle } from "../parts/PageTitle"

export default function JobsPage() {
  return <PageTitle title="Jobs" documentTitle="Jobs" />
}

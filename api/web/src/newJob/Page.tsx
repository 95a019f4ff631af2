import { PageTitle } from "../parts/PageTitle"

export default function NewJobPage() {
  return <PageTitle title="NewJob" documentTitle="NewJob" />
}

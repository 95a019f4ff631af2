import { PageTitle } from "../parts/PageTitle"

export default function AccessPage() {
  return <PageTitle title="Access" documentTitle="Access" />
}

import { PageTitle } from "../parts/PageTitle"

export default function ComparePage() {
  return <PageTitle title="Compare" documentTitle="Compare" />
}

import { PageTitle } from "../parts/PageTitle"

export default function HostsPage() {
  return <PageTitle title="Hosts" documentTitle="Hosts" />
}

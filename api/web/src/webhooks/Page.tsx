import { PageTitle } from "../parts/PageTitle"

export default function WebhooksPage() {
  return <PageTitle title="Webhooks" documentTitle="Webhooks" />
}

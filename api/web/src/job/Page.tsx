import { PageTitle } from "../parts/PageTitle"

export default function JobPage({ id, tab }: { id: number; tab: string | undefined }) {
  return <PageTitle title={`Job ${id} ${tab ?? ""}`} documentTitle={`Job ${id}`} />
}

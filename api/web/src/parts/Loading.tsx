/** What stands where something is still on its way; it says so to a screen reader too. */
import { Center, Loader } from "@mantine/core"

export function Loading({ what }: { what: string }) {
  return (
    <Center p="xl" role="status" aria-label={`Loading ${what}`}>
      <Loader size="sm" />
    </Center>
  )
}

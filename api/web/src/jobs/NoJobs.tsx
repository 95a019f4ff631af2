/** What stands where no job was ever submitted: the first command to type. */
import { Box, Stack, Text } from "@mantine/core"

import { CopyText } from "../parts/CopyText"
import { Empty } from "../parts/Empty"
import { apiAddress } from "../place"
import { useRights } from "../session/rights"
import { firstCommands } from "./firstCommands"

export function NoJobs() {
  const { asksForTokens, maySubmit } = useRights()
  const { command, curl } = firstCommands({ url: apiAddress, asksForTokens })
  return (
    <Empty title="No jobs yet">
      {maySubmit ? (
        <Stack gap="xs" w="100%" maw={720}>
          <Text size="sm">Train a small model on handwritten digits, about a minute on a CPU. In a terminal:</Text>
          <Box>
            <CopyText text={command} label="the first command" />
          </Box>
          <Text size="sm">Or by the HTTP API:</Text>
          <Box>
            <CopyText text={curl} label="the first request" />
          </Box>
        </Stack>
      ) : (
        <Text size="sm">Jobs that others submit appear here.</Text>
      )}
    </Empty>
  )
}

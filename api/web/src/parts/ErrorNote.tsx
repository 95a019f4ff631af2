/** An error in the service's own words, with the fields at fault, and a way to try again where that makes sense. */
import { Alert, Button, List, Text } from "@mantine/core"

import { ProblemError } from "../api/problems"

export function ErrorNote({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  const problem = error instanceof ProblemError ? error : undefined
  return (
    <Alert color="red" role="alert" title={problem ? problem.detail : error.message} maw={720}>
      {problem && problem.fields.length > 0 && (
        <List size="sm">
          {problem.fields.map(({ field, message }) => (
            <List.Item key={`${field} ${message}`}>
              {field ? `${field}: ` : ""}
              {message}
            </List.Item>
          ))}
        </List>
      )}
      {problem?.requestId && (
        <Text size="xs" c="dimmed">
          Request {problem.requestId}
        </Text>
      )}
      {onRetry && (
        <Button variant="default" size="xs" mt="xs" onClick={onRetry}>
          Try again
        </Button>
      )}
    </Alert>
  )
}

/** An error in the service's own words, with the fields at fault, and a way to try again where that makes sense. */
import { Alert, Button, List, Text } from "@mantine/core"

import { ProblemError } from "../api/problems"

export function ErrorNote({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  const problem = error instanceof ProblemError ? error : undefined
  // The detail of several fields is all of them in one line: a list reads better, and nothing is said twice.
  const isList = problem !== undefined && problem.fields.length > 1
  return (
    <Alert
      color="red"
      role="alert"
      title={isList ? `${problem.fields.length} fields are wrong` : error.message}
      maw={720}
    >
      {isList && (
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

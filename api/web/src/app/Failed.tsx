/** What is shown where a part of the page has failed by its own fault: said, with a way on, and never a blank page. */
import { Alert, Button, Code, Stack } from "@mantine/core"
import { Component, type ReactNode } from "react"

import { asError } from "../api/problems"

interface FailedProps {
  children: ReactNode
  /** Where it is shown: another place is tried anew. */
  at?: string
}

export class Failed extends Component<FailedProps, { error: Error | null }> {
  override state: { error: Error | null } = { error: null }

  static getDerivedStateFromError(error: unknown) {
    return { error: asError(error) }
  }

  override componentDidUpdate(before: FailedProps) {
    if (before.at !== this.props.at && this.state.error !== null) this.setState({ error: null })
  }

  override render() {
    const { error } = this.state
    if (error === null) return this.props.children
    return (
      <Alert color="red" role="alert" title="This page has failed" m="md">
        <Stack align="start" gap="xs">
          <Code block>{error.message}</Code>
          <Button variant="default" onClick={() => window.location.reload()}>
            Load it anew
          </Button>
        </Stack>
      </Alert>
    )
  }
}

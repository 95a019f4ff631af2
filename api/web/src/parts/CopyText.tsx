/** A command or program to copy. */
import { Box, Code, CopyButton, Button } from "@mantine/core"

export function CopyText({ text, label }: { text: string; label: string }) {
  return (
    <Box pos="relative">
      {/* A region that scrolls must be reachable by keyboard. */}
      <Code block tabIndex={0} aria-label={label} pr={90}>
        {text}
      </Code>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <Button
            size="compact-xs"
            variant="default"
            pos="absolute"
            top={6}
            right={6}
            onClick={copy}
            aria-label={`Copy ${label}`}
          >
            {copied ? "Copied" : "Copy"}
          </Button>
        )}
      </CopyButton>
    </Box>
  )
}

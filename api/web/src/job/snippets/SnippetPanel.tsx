/** What the tab shows, as commands to copy. */
import { SegmentedControl, Text } from "@mantine/core"

import type { Job } from "../../api/types"
import { CopyText } from "../../parts/CopyText"
import { apiAddress } from "../../place"
import { useRights } from "../../session/rights"
import { Section } from "../Section"
import { snippetsFor, type TabPath } from "./snippets"

const LANGUAGES = [
  { value: "cli", label: "Command" },
  { value: "curl", label: "curl" },
  { value: "python", label: "Python" },
] as const

export type Language = (typeof LANGUAGES)[number]["value"]

export function isLanguage(text: string | null): text is Language {
  return LANGUAGES.some(({ value }) => value === text)
}

interface SnippetPanelProps {
  job: Job
  tab: TabPath
  language: Language
  onLanguage: (language: Language) => void
}

export function SnippetPanel({ job, tab, language, onLanguage }: SnippetPanelProps) {
  const { asksForTokens } = useRights()
  return (
    <Section
      title="As a command"
      aside={
        <SegmentedControl
          size="xs"
          aria-label="Language"
          data={[...LANGUAGES]}
          value={language}
          onChange={(value) => {
            if (isLanguage(value)) onLanguage(value)
          }}
        />
      }
    >
      {asksForTokens && language === "curl" && (
        <Text size="sm" mb="xs">
          Your token is to be in the variable RANKZERO_TOKEN.
        </Text>
      )}
      {snippetsFor(tab, job, { url: apiAddress, asksForTokens }).map((snippet) => (
        <div key={snippet.title} style={{ marginBottom: "var(--mantine-spacing-sm)" }}>
          <Text size="sm" mb={4}>
            {snippet.title}
          </Text>
          <CopyText text={snippet[language]} label={snippet.title} />
        </div>
      ))}
    </Section>
  )
}

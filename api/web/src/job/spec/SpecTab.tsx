/** What was asked for: the spec as it is stored, where it has run, and from which jobs it comes. */
import { Group, Text } from "@mantine/core"

import type { Job } from "../../api/types"
import { CopyText } from "../../parts/CopyText"
import { Section } from "../Section"
import { specNow } from "../snippets/snippets"
import { Environment } from "./Environment"
import { Lineage } from "./Lineage"

export default function SpecTab({ job }: { job: Job }) {
  return (
    <>
      <Section title="Lineage">
        <Lineage job={job} />
      </Section>
      <Section title="Environment">
        <Environment job={job} />
      </Section>
      <Section title="Spec">
        <Group mb="xs">
          <Text size="sm" c="dimmed">
            In its canonical form, with every default, and the priority and labels that it has now.
          </Text>
        </Group>
        <CopyText text={JSON.stringify(specNow(job), null, 2)} label="spec" />
      </Section>
    </>
  )
}

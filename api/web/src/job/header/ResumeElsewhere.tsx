/** Lets a paused job go on with other devices or on another host. */
import { Button, Group, Modal, NativeSelect, Stack, Text, TextInput } from "@mantine/core"
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"

import { hostsQuery } from "../../api/queries"
import type { Job } from "../../api/types"
import { keepJobs, tell } from "../../api/verbs"
import { devicesInWords } from "../../format/devices"
import { ErrorNote } from "../../parts/ErrorNote"
import { notices } from "../../parts/notices"
import { NO_PLACE, placeOf } from "./place"
import { outcomeOf } from "./useVerb"

export function ResumeElsewhere({ job, onClose }: { job: Job; onClose: () => void }) {
  const client = useQueryClient()
  const hosts = useQuery(hostsQuery())
  const [fields, setFields] = useState(NO_PLACE)
  const resume = useMutation({
    mutationFn: async () => tell("resume", job.id, placeOf(fields)),
    onSuccess: (answered) => {
      keepJobs(client, [answered])
      notices.done(outcomeOf("resume", answered))
      onClose()
    },
  })
  const field = (name: keyof typeof fields) => ({
    value: fields[name],
    onChange: ({ currentTarget: { value } }: { currentTarget: { value: string } }) =>
      setFields((before) => ({ ...before, [name]: value })),
  })
  return (
    <Modal
      opened
      onClose={onClose}
      title={`Resume job ${job.id} elsewhere`}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault()
          resume.mutate()
        }}
      >
        <Stack gap="sm">
          <Text size="sm">
            It goes on from its last checkpoint. What is left empty stays as it is: {devicesInWords(job.spec)}.
          </Text>
          <TextInput
            data-autofocus
            label="Devices"
            description='0,1 · cuda:0 · cpu · auto · {"count": 2}'
            {...field("device")}
          />
          <TextInput label="Ranks" description="With the device cpu" type="number" min={1} {...field("ranks")} />
          <NativeSelect
            label="Host"
            data={[{ value: "", label: "As it is" }, ...(hosts.data ?? []).map(({ name }) => name)]}
            {...field("host")}
          />
          <TextInput
            label="Hosts together"
            description="How many, each with these devices"
            type="number"
            min={1}
            {...field("nodes")}
          />
          {resume.error && <ErrorNote error={resume.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Keep it paused
            </Button>
            <Button type="submit" loading={resume.isPending}>
              Resume
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}

/** Settings of this browser: colours, time zone, density. */
import { SegmentedControl, Select, Stack, Text, useMantineColorScheme, type MantineColorScheme } from "@mantine/core"

import { PageTitle } from "../parts/PageTitle"
import { At } from "../parts/Time"
import { settings, useSettings, type Density } from "./settings"

const ZONES = [
  { value: "local", label: "This browser's" },
  { value: "UTC", label: "UTC" },
  ...Intl.supportedValuesOf("timeZone").map((zone) => ({ value: zone, label: zone })),
]

export default function SettingsPage() {
  const { timeZone, density } = useSettings()
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  return (
    <>
      <PageTitle title="Settings" documentTitle="Settings" />
      <Stack maw={420} gap="lg">
        <Choice<MantineColorScheme>
          label="Theme"
          value={colorScheme}
          choices={{ auto: "As the system", light: "Light", dark: "Dark" }}
          onChange={setColorScheme}
        />
        <Select
          label="Time zone"
          description={
            <>
              It is <At at={new Date().toISOString()} /> there
            </>
          }
          data={ZONES}
          value={timeZone}
          searchable
          allowDeselect={false}
          onChange={(zone) => {
            if (zone !== null) settings.change({ timeZone: zone })
          }}
        />
        <Choice<Density>
          label="Density"
          value={density}
          choices={{ comfortable: "Comfortable", compact: "Compact" }}
          onChange={(value) => settings.change({ density: value })}
        />
        <Text size="sm" c="dimmed">
          These are kept in this browser.
        </Text>
      </Stack>
    </>
  )
}

interface ChoiceProps<T extends string> {
  label: string
  value: T
  choices: Record<T, string>
  onChange: (value: T) => void
}

function Choice<T extends string>({ label, value, choices, onChange }: ChoiceProps<T>) {
  return (
    <Stack gap={4}>
      <Text size="sm" fw={500} aria-hidden>
        {label}
      </Text>
      <SegmentedControl
        aria-label={label}
        value={value}
        data={(Object.keys(choices) as T[]).map((each) => ({ value: each, label: choices[each] }))}
        onChange={(each) => onChange(each)}
      />
    </Stack>
  )
}

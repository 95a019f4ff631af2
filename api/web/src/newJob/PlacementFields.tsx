/** Where to train: devices by name or number, which host, how many hosts. */
import { NativeSelect, TextInput } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useState } from "react"

import { hostsQuery } from "../api/queries"
import type { Host } from "../api/types"
import { isObject, valueAt } from "../format/json"
import { FieldList, FormField, wordsBefore } from "./FieldList"
import { inputId, type Form } from "./form"
import classes from "./newJob.module.css"
import { FIRST, WAYS, wayOf, type Way } from "./placements"
import type { Field } from "./schemas"
import { plain, read } from "./texts"

export function PlacementFields({ fields, form }: { fields: readonly Field[]; form: Form }) {
  const hosts = useQuery(hostsQuery())
  const { spec } = form.draft
  const [chosen, setChosen] = useState<Way | null>(null)
  const way = wayOf(spec.device, chosen)
  const field = (id: string) => fields.find((each) => each.id === id)
  const device = field("device")
  const ranks = field("nproc_per_node")
  const host = field("host")
  const nodes = field("nodes")

  const choose = (next: Way) => {
    setChosen(next)
    form.change({ kind: "set", path: ["device"], value: FIRST[next] })
    // A number of ranks is for the CPU alone.
    if (next !== "cpu") form.change({ kind: "set", path: ["nproc_per_node"], value: undefined })
  }
  return (
    <div className={classes.fields}>
      <NativeSelect
        size="xs"
        label="Train on"
        description={(device && wordsBefore(device, form)) ?? "One rank on each device."}
        classNames={{ description: classes.description }}
        data={Object.entries(WAYS).map(([value, label]) => ({ value, label }))}
        value={way}
        onChange={({ currentTarget: { value } }) => choose(value as Way)}
        // With no input of its own, the way is what is wrong with the device.
        {...(way === "devices" || way === "count" ? {} : { id: inputId("device"), error: form.errors.get("device") })}
      />
      {way === "devices" && (
        <TextInput
          id={inputId("device")}
          size="xs"
          label="Devices"
          description={devicesOf(hosts.data ?? [])}
          classNames={{ description: classes.description }}
          placeholder="0,1"
          value={form.draft.texts.device?.text ?? plain(spec.device ?? "")}
          error={form.errors.get("device")}
          onChange={({ currentTarget: { value: text } }) =>
            form.change({
              kind: "set",
              path: ["device"],
              value: read("json", text).value ?? "",
              typed: { text, problem: null },
            })
          }
          autoComplete="off"
          spellCheck={false}
        />
      )}
      {way === "cpu" && ranks && <FormField field={ranks} form={form} />}
      {way === "count" && device && <CountFields device={device} form={form} />}
      {host && <HostField field={host} hosts={hosts.data ?? []} form={form} />}
      {nodes && <FormField field={nodes} form={form} />}
    </div>
  )
}

function CountFields({ device, form }: { device: Field; form: Form }) {
  const error = form.errors.get("device")
  return (
    <fieldset className={classes.group} id={inputId("device")} tabIndex={-1} aria-invalid={error ? true : undefined}>
      <legend>GPUs</legend>
      {error && <p className={classes.error}>{error}</p>}
      <FieldList fields={device.fields.filter(({ id }) => id !== "device.host")} form={form} />
    </fieldset>
  )
}

/** Which host: beside the devices, or within their number where the spec names it there. */
function HostField({ field, hosts, form }: { field: Field; hosts: readonly Host[]; form: Form }) {
  const { device } = form.draft.spec
  const path = isObject(device) && typeof device.host === "string" ? ["device", "host"] : field.path
  const value = valueAt(form.draft.spec, path)
  const shown = typeof value === "string" ? value : ""
  const names = hosts.map(({ name }) => name)
  return (
    <NativeSelect
      id={inputId(field.id)}
      size="xs"
      label={field.label}
      description={wordsBefore(field, form) ?? "Only there, or wherever there is room."}
      classNames={{ description: classes.description }}
      error={form.errors.get("host") ?? form.errors.get("device.host")}
      data={[
        { value: "", label: "any" },
        ...(shown === "" || names.includes(shown) ? names : [...names, shown]).map((name) => ({
          value: name,
          label: name,
        })),
      ]}
      value={shown}
      onChange={({ currentTarget: { value: name } }) =>
        form.change({ kind: "set", path, value: name === "" ? undefined : name })
      }
    />
  )
}

/** What there is to name: `local: cuda:0, cuda:1 (busy)`. */
function devicesOf(hosts: readonly Host[]): string {
  const told = hosts.map(({ name, devices }) => {
    const each = devices.map((device) => (device.held_by ? `${device.name} (busy)` : device.name))
    return `${name}: ${each.join(", ")}`
  })
  return ["Such as 0,1 or cuda:0.", ...told].join(" ")
}

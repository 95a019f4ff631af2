/** What a job's GPUs did, as lines by time: one for each device. */
import type { DeviceSample } from "../../api/types"
import type { Origin } from "../../charts/axis"
import { grouped } from "../../charts/grouped"
import type { Line } from "../../charts/lines"

export type Quantity = "utilisation" | "memory_bytes" | "temperature_c" | "power_w"

/** Samples farther apart than so many of the usual distances leave a gap: the job did not have the device between. */
const GAP = 2.5

/** Return the lines of a quantity; `axis` is one of time. A device that cannot tell it has none. */
export function telemetryLines(
  samples: readonly DeviceSample[],
  quantity: Quantity,
  axis: "elapsed" | "clock",
  origin: Origin,
): Line[] {
  const zero = axis === "clock" ? 0 : (origin.startedAt ?? Date.parse(samples[0]?.at ?? "")) / 1000
  const byDevice = grouped(samples, ({ host, device }) => `${host} ${device}`)
  const lines: Line[] = []
  for (const [label, its] of byDevice) {
    if (its.every((sample) => sample[quantity] === null)) continue
    const at = its.map((sample) => Date.parse(sample.at) / 1000 - zero)
    lines.push({
      id: label,
      label,
      inkIndex: lines.length,
      ...withGaps(
        at,
        its.map((sample) => sample[quantity]),
      ),
    })
  }
  return lines
}

function withGaps(at: readonly number[], values: readonly (number | null)[]): Pick<Line, "at" | "values"> {
  const usual = at.reduce((least, x, index) => {
    const distance = x - (at[index - 1] ?? Number.NEGATIVE_INFINITY)
    return distance > 0 && distance < least ? distance : least
  }, Number.POSITIVE_INFINITY)
  const all: Pick<Line, "at" | "values"> & { at: number[]; values: (number | null)[] } = { at: [], values: [] }
  at.forEach((x, index) => {
    const before = at[index - 1]
    if (before !== undefined && x - before > GAP * usual) {
      all.at.push(before + usual)
      all.values.push(null)
    }
    all.at.push(x)
    all.values.push(values[index] ?? null)
  })
  return all
}

/** How all charts of a page are looked at: axis, smoothing, scale, zoom; what is done by dragging is done by buttons too. */
import { Button, Checkbox, Group, NativeSelect } from "@mantine/core"
import { useDebouncedCallback } from "@mantine/hooks"
import { useId, useState, type ReactNode } from "react"

import { AXES, AXIS_TITLES, type Axis, type Range } from "./axis"
import classes from "./Chart.module.css"
import { MOST_SMOOTHING, movedBy, zoomedBy, type ChartView } from "./view"

// With both digits always, or the slider would move beside it.
const SHARE = new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 2 })

interface ControlsProps {
  view: ChartView
  change: (changes: Partial<ChartView>) => void
  /** All there is on the axis; null while there is nothing. */
  whole: Range | null
  children?: ReactNode
}

export function Controls({ view, change, whole, children }: ControlsProps) {
  const { zoom } = view
  const shown = zoom ?? whole
  return (
    <div className={classes.controls} role="group" aria-label="How the charts are shown">
      <NativeSelect
        label="Axis"
        size="xs"
        value={view.axis}
        data={AXES.map((value) => ({ value, label: AXIS_TITLES[value] }))}
        onChange={(event) => change({ axis: event.currentTarget.value as Axis })}
      />
      <Smoothing value={view.smoothing} onChange={(smoothing) => change({ smoothing })} />
      <Checkbox
        label="Logarithmic"
        checked={view.isLog}
        onChange={(event) => change({ isLog: event.currentTarget.checked })}
      />
      {children}
      {whole && shown && (
        <Group gap={4} role="group" aria-label="Zoom">
          <Button variant="default" size="xs" onClick={() => change({ zoom: zoomedBy(shown, whole, 2) })}>
            Zoom in
          </Button>
          <Button
            variant="default"
            size="xs"
            disabled={!zoom}
            onClick={() => change({ zoom: zoomedBy(shown, whole, 0.5) })}
          >
            Zoom out
          </Button>
          <Button
            variant="default"
            size="xs"
            disabled={!zoom}
            onClick={() => change({ zoom: movedBy(shown, whole, -0.5) })}
          >
            Earlier
          </Button>
          <Button
            variant="default"
            size="xs"
            disabled={!zoom}
            onClick={() => change({ zoom: movedBy(shown, whole, 0.5) })}
          >
            Later
          </Button>
          <Button variant="default" size="xs" disabled={!zoom} onClick={() => change({ zoom: null })}>
            Show all
          </Button>
        </Group>
      )}
    </div>
  )
}

/** An address that changes with every pixel is refused by browsers: it follows once the slider rests. */
const REST_MS = 120

function Smoothing({ value, onChange }: { value: number; onChange: (value: number) => void }) {
  const id = useId()
  // What the slider says while the address still has `of`.
  const [draft, setDraft] = useState({ of: value, value })
  const commit = useDebouncedCallback(onChange, REST_MS)
  const shown = draft.of === value ? draft.value : value
  return (
    <div className={classes.smoothing}>
      <label htmlFor={id}>Smoothing {SHARE.format(shown)}</label>
      <input
        id={id}
        type="range"
        min={0}
        max={MOST_SMOOTHING}
        step={0.01}
        value={shown}
        onChange={(event) => {
          const next = Number(event.currentTarget.value)
          setDraft({ of: value, value: next })
          commit(next)
        }}
      />
    </div>
  )
}

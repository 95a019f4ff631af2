/** uPlot within React: made for a shape, fed with columns, as wide as its place, and drawn only while it can be seen. */
import "uplot/dist/uPlot.min.css"

import uPlot from "uplot"
import { useEffect, useEffectEvent, useRef, type RefObject } from "react"

import type { Range } from "./axis"
import type { Columns } from "./lines"
import { drawGaps, drawMarks, type Mark } from "./marks"
import { GROUNDS } from "./palette"
import type { Cursor } from "./hover"
import { optionsOf, type Shape } from "./plotOptions"

interface PlotProps {
  place: RefObject<HTMLDivElement | null>
  /** Whether it is on the screen, or nearly: it is drawn only then. */
  isNear: boolean
  shape: Shape
  columns: Columns
  marks: readonly Mark[]
  /** What of the axis is shown; null for all there is. */
  range: Range | null
  /** By line: whether it is left out. */
  isHidden: readonly boolean[]
  format: (value: number) => string
  onZoom: (range: Range | null) => void
  onCursor: (cursor: Cursor | null) => void
  /** Where the canvas can be had from for a picture. */
  onPlot?: (plot: uPlot | null) => void
}

export function Plot(props: PlotProps) {
  const { place, isNear, shape, columns, marks, range, isHidden } = props
  const plot = useRef<uPlot | null>(null)
  const shapeKey = JSON.stringify(shape)

  const currentRange = useEffectEvent(() => props.range)
  const format = useEffectEvent((value: number) => props.format(value))
  const zoom = useEffectEvent((to: Range | null) => props.onZoom(to))
  const cursor = useEffectEvent((to: Cursor | null) => props.onCursor(to))
  const tellPlot = useEffectEvent((made: uPlot | null) => props.onPlot?.(made))
  const draw = useEffectEvent((made: uPlot) => {
    const ground = GROUNDS[props.shape.scheme]
    drawMarks(made, props.marks, ground)
    drawGaps(made, props.columns.gaps, ground)
  })
  const make = useEffectEvent((target: HTMLElement) => {
    const reactions = {
      range: () => currentRange(),
      format: (value: number) => format(value),
      onZoom: (to: Range | null) => zoom(to),
      onCursor: (to: Cursor | null) => cursor(to),
      draw: (made: uPlot) => draw(made),
    }
    return new uPlot(optionsOf(props.shape, target.clientWidth, reactions), props.columns.data, target)
  })

  useEffect(() => {
    const target = place.current
    if (target === null || !isNear) return
    const made = make(target)
    plot.current = made
    tellPlot(made)
    const observer = new ResizeObserver(() => {
      if (target.clientWidth !== made.width) made.setSize({ width: target.clientWidth, height: made.height })
    })
    observer.observe(target)
    return () => {
      observer.disconnect()
      tellPlot(null)
      plot.current = null
      made.destroy()
    }
  }, [place, isNear, shapeKey])

  useEffect(() => {
    const made = plot.current
    if (made === null) return
    // Marks are drawn with the data, and a range is asked for with it.
    made.setData(columns.data)
  }, [columns, marks, range])

  useEffect(() => {
    const made = plot.current
    if (made === null) return
    const each = shape.isSmoothed ? 2 : 1
    isHidden.forEach((hidden, line) => {
      for (let series = 1 + line * each; series < 1 + (line + 1) * each; series += 1) {
        if (made.series[series]?.show === hidden) made.setSeries(series, { show: !hidden })
      }
    })
  }, [isHidden, isNear, shapeKey, shape.isSmoothed])

  return <div ref={place} style={{ height: shape.height, overflow: "hidden" }} aria-hidden />
}

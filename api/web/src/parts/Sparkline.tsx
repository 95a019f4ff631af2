/** A small curve of a few values, for a row of a table. */
export function Sparkline({
  values,
  label,
  width = 96,
  height = 22,
}: {
  values: readonly number[]
  label: string
  width?: number
  height?: number
}) {
  if (values.length < 2) return null
  const low = Math.min(...values)
  const span = Math.max(...values) - low || 1
  const points = values
    .map((value, index) => {
      const x = 1 + (index / (values.length - 1)) * (width - 2)
      const y = height - 2 - ((value - low) / span) * (height - 4)
      return `${x.toFixed(1)},${y.toFixed(1)}`
    })
    .join(" ")
  return (
    <svg width={width} height={height} role="img" aria-label={label}>
      <polyline points={points} fill="none" stroke="var(--mantine-primary-color-filled)" strokeWidth={1.5} />
    </svg>
  )
}

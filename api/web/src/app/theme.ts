/** Colours and sizes: Mantine's, with the shades that WCAG's contrasts of AA take in light and in dark. */
import { createTheme, type CSSVariablesResolver } from "@mantine/core"

export const theme = createTheme({
  primaryColor: "blue",
  primaryShade: { light: 8, dark: 8 },
  autoContrast: true,
  fontFamily: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif",
  fontFamilyMonospace: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
  respectReducedMotion: true,
  cursorType: "pointer",
})

export const variables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-dimmed": "var(--mantine-color-gray-7)",
    "--mantine-color-placeholder": "var(--mantine-color-gray-7)",
    "--mantine-color-anchor": "var(--mantine-color-blue-8)",
    "--mantine-color-error": "var(--mantine-color-red-9)",
    "--mantine-color-red-light-color": "#9b1c1c",
    "--mantine-color-blue-light-color": "var(--mantine-color-blue-9)",
    "--mantine-color-yellow-light-color": "#744800",
    "--mantine-color-green-light-color": "#1b5e2a",
  },
  dark: {
    "--mantine-color-dimmed": "var(--mantine-color-gray-5)",
    "--mantine-color-placeholder": "var(--mantine-color-gray-5)",
    "--mantine-color-anchor": "var(--mantine-color-blue-3)",
    "--mantine-color-error": "var(--mantine-color-red-4)",
    "--mantine-color-red-light-color": "var(--mantine-color-red-2)",
    "--mantine-color-blue-light-color": "var(--mantine-color-blue-2)",
    "--mantine-color-yellow-light-color": "var(--mantine-color-yellow-2)",
    "--mantine-color-green-light-color": "var(--mantine-color-green-2)",
  },
})

import { existsSync, readFileSync } from "node:fs"

import { expect, test } from "vitest"

const STYLES = "node_modules/@mantine/core/styles"

test("the styles of every component that is used are there", () => {
  const sources = Object.values(
    import.meta.glob<string>("./**/*.tsx", { query: "?raw", import: "default", eager: true }),
  )
  const imports = sources.flatMap((source) => [...source.matchAll(/import \{([^}]*)\} from "@mantine\/core"/g)])
  const names = new Set(imports.flatMap(([, list]) => (list ?? "").split(",").map((name) => name.trim())))
  const styled = [...names].filter((name) => name && existsSync(`${STYLES}/${name}.css`))
  const listed = readFileSync("src/mantine.ts", "utf8")
  expect(styled.length).toBeGreaterThan(20)
  expect(styled.filter((name) => !listed.includes(`styles/${name}.css`))).toEqual([])
})

// What lint asks of the dashboard's sources.
import js from "@eslint/js"
import a11y from "eslint-plugin-jsx-a11y"
import hooks from "eslint-plugin-react-hooks"
import { defineConfig } from "eslint/config"
import globals from "globals"
import ts from "typescript-eslint"

const NO_PAGE = { group: ["**/Page"], message: "A page is imported by src/app/routes.tsx alone." }

/** What each folder of src/ may import of the others, as README.md has it; `api/types` is one module of a folder. */
const PAGES = ["jobs", "job", "compare", "newJob", "hosts", "access", "webhooks"]
const BELOW_PAGES = ["charts", "keys", "parts", "session", "live", "api", "format", "settings", "place"]
const MAY_IMPORT = {
  charts: ["parts", "live", "api", "settings", "format"],
  keys: ["parts", "api"],
  parts: ["api", "settings", "format", "place"],
  session: ["parts", "api", "place"],
  live: ["api"],
  api: ["session/token", "parts/notices", "place"],
  format: ["api/types"],
  settings: ["parts"],
  ...Object.fromEntries(PAGES.map((page) => [page, BELOW_PAGES])),
}

/** @param {[string, string[]]} entry */
function wall([folder, allowed]) {
  const others = [...PAGES, ...BELOW_PAGES, "app"].filter((other) => other !== folder)
  const barred = others.filter((other) => !allowed.some((each) => each.split("/")[0] === other))
  const partly = allowed.map((each) => each.split("/")).filter(([, name]) => name !== undefined)
  const paths = [...barred.map((each) => `${each}(/|$)`), ...partly.map(([top, name]) => `${top}/(?!${name}$)`)]
  const message = `${folder}/ may import ${allowed.join(", ")} alone: see README.md.`
  const patterns = [NO_PAGE, { regex: `^(\\.\\./)+(${paths.join("|")})`, message }]
  return {
    files: [`src/${folder}/**/*.{ts,tsx}`],
    ignores: ["**/*.test.*"],
    rules: { "no-restricted-imports": ["error", { patterns }] },
  }
}

export default defineConfig(
  { ignores: ["src/api/schema.d.ts", "node_modules/", "postcss.config.cjs"] },
  js.configs.recommended,
  ts.configs.strictTypeChecked,
  a11y.flatConfigs.recommended,
  hooks.configs.flat["recommended-latest"],
  {
    languageOptions: { globals: globals.browser, parserOptions: { projectService: true } },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "max-lines": ["error", 400],
      eqeqeq: "error",
      "no-console": "error",
      // Numbers read well in a template; anything else there is still an error.
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      // `onClick={() => save()}` is how React's handlers are written; a promise left unhandled is still an error.
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "@typescript-eslint/no-misused-promises": ["error", { checksVoidReturn: { attributes: false } }],
    },
  },
  ...Object.entries(MAY_IMPORT).map(wall),
)

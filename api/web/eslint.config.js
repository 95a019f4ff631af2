// What lint asks of the dashboard's sources.
import js from "@eslint/js"
import a11y from "eslint-plugin-jsx-a11y"
import hooks from "eslint-plugin-react-hooks"
import { defineConfig } from "eslint/config"
import globals from "globals"
import ts from "typescript-eslint"

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
      // Walls: pages do not import one another, and nothing imports a page but the list of routes.
      "no-restricted-imports": [
        "error",
        { patterns: [{ group: ["**/Page"], message: "A page is imported by src/app/routes.tsx alone." }] },
      ],
    },
  },
  { files: ["src/app/routes.tsx", "**/*.test.tsx"], rules: { "no-restricted-imports": "off" } },
)

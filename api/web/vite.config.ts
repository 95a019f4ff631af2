// How the dashboard is built, tried and tested.
import { fileURLToPath } from "node:url"
import react from "@vitejs/plugin-react"
import { defineConfig, type Plugin } from "vitest/config"

/** Where `npm run dev` has the dashboard, as the service does. */
const PATH = "/ui/"

/** Writes into the page what the service writes there: below which address the dashboard lies. */
const address: Plugin = {
  name: "address",
  apply: "serve",
  transformIndexHtml: () => [{ tag: "base", attrs: { href: PATH }, injectTo: "head-prepend" }],
}

export default defineConfig(({ command }) => ({
  plugins: [react(), address],
  // What is built has addresses relative to the page: below whatever path the service is reached.
  base: command === "serve" ? PATH : "./",
  build: {
    outDir: process.env.RANKZERO_STATIC ?? fileURLToPath(new URL("../static", import.meta.url)),
    emptyOutDir: true,
    target: "es2022",
    sourcemap: false,
    chunkSizeWarningLimit: 600,
  },
  server: {
    // For `npm run dev`: a service that runs beside it, such as `make up`, has all paths but the dashboard's own.
    proxy: { [`^/(?!${PATH.slice(1)}).`]: process.env.RANKZERO_URL ?? "http://127.0.0.1:8000" },
  },
  test: {
    environment: "jsdom",
    include: ["src/**/*.test.{ts,tsx}"],
    setupFiles: ["src/testing/setup.ts"],
    clearMocks: true,
  },
}))

// How the dashboard is built, tried and tested.
import { fileURLToPath } from "node:url"
import react from "@vitejs/plugin-react"
import { defineConfig } from "vitest/config"

export default defineConfig({
  plugins: [react()],
  // Addresses relative to the page: below whatever path the service is reached.
  base: "./",
  build: {
    outDir: process.env.RANKZERO_STATIC ?? fileURLToPath(new URL("../static", import.meta.url)),
    emptyOutDir: true,
    target: "es2022",
    sourcemap: false,
    chunkSizeWarningLimit: 600,
  },
  server: {
    // For `npm run dev`: a service that runs beside it, such as `make up`.
    proxy: Object.fromEntries(
      [
        "jobs",
        "hosts",
        "events",
        "me",
        "recipes",
        "data-sets",
        "webhooks",
        "tokens",
        "users",
        "quotas",
        "audit",
        "readyz",
      ].map((path) => [`/${path}`, process.env.RANKZERO_URL ?? "http://127.0.0.1:8000"]),
    ),
  },
  test: {
    environment: "jsdom",
    include: ["src/**/*.test.{ts,tsx}"],
    setupFiles: ["src/testing/setup.ts"],
    clearMocks: true,
  },
})

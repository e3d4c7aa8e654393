import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { withWidths } from "./src/ui/breakpoints.ts";

/** A running `planwave serve`; it takes no requests from pages of other origins. */
const ADDRESS = "http://127.0.0.1:8000";
const SERVICE = { target: ADDRESS, changeOrigin: true, headers: { origin: ADDRESS } };

// Asset addresses are relative: the server writes the path prefix into <base> of index.html.
export default defineConfig({
  base: "./",
  plugins: [react()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  // Style sheets name the widths of `breakpoints.ts`, as a `@custom-media` rule of CSS would.
  css: {
    postcss: {
      plugins: [
        {
          postcssPlugin: "breakpoints",
          AtRule: {
            media: (rule) => {
              rule.params = withWidths(rule.params);
            },
          },
        },
      ],
    },
  },
  build: {
    outDir: "../planwave/api/web",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    // The page, and the frame in which diagrams are drawn.
    rolldownOptions: {
      input: ["index.html", "diagram.html"],
      output: {
        // Each part that two screens share would be a file of its own, most of them below 1 kB: as many requests.
        codeSplitting: {
          groups: [
            {
              name: "controls",
              test: /node_modules\/(@radix-ui|@floating-ui|react-remove-scroll|react-style-singleton|use-|aria-hidden|zustand)/,
              minShareCount: 4,
            },
            {
              name: "shared",
              test: /\/src\/(json|api|app|ui|screens\/[A-Z]\w+)/,
              minShareCount: 6,
              includeDependenciesRecursively: false,
            },
            {
              name: "lanes",
              test: /\/src\/(screens\/goal\/planView|screens\/editor\/forecastWords|stream\/(waves|graphIndex)|canvas\/(layout|planLayout|grouping|PlanLanes|TypeIcon|cardText|taskText))/,
              minShareCount: 2,
              includeDependenciesRecursively: false,
            },
            {
              name: "goal",
              test: /\/src\/(ui\/(Chip|Popover)|screens\/goal|screens\/WayOut|screens\/ProviderState|api\/sse|canvas\/(WaveGlyph|RunStatus|RunTitle))/,
              minShareCount: 2,
              includeDependenciesRecursively: false,
            },
          ],
        },
      },
    },
    // Mermaid comes in parts, some of them large, each with the first diagram that needs it.
    chunkSizeWarningLimit: 700,
  },
  server: {
    proxy: { "/api": { ...SERVICE }, "/readyz": { ...SERVICE }, "/ws": { ...SERVICE, ws: true } },
  },
  test: {
    // Only components need a document, and making one takes longer than most tests.
    projects: [
      { extends: true, test: { name: "logic", include: ["src/**/*.test.ts"] } },
      {
        extends: true,
        test: { name: "components", include: ["src/**/*.test.tsx"], environment: "happy-dom" },
      },
    ],
    setupFiles: ["src/testSetup.ts"],
    restoreMocks: true,
    // One environment for all files: making a new one for each takes three times as long as the tests.
    pool: "threads",
    isolate: false,
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});

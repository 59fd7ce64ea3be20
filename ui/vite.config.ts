import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// Where `medgrape serve` listens while the page is being worked on (`make ui-dev`).
const SERVER = process.env.MEDGRAPE_SERVER ?? "http://127.0.0.1:8000";

export default defineConfig({
  plugins: [react()],
  base: "/",
  build: {
    outDir: "../src/medgrape/server/page",
    emptyOutDir: true,
    // Inlined pictures would be data: addresses, which the content security policy does not allow.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    license: { fileName: "assets/licences.md" },
  },
  server: {
    proxy: {
      "/api": {
        target: SERVER,
        changeOrigin: true,
        configure: (proxy) => {
          // The server refuses whatever comes from another site's page; here the page is our own.
          proxy.on("proxyReq", (request) => request.setHeader("Origin", SERVER));
        },
      },
    },
  },
  test: { environment: "jsdom", include: ["src/**/*.test.{ts,tsx}"] },
});

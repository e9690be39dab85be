// SPDX-License-Identifier: BSD-3-Clause
// Build the page into dist/, or, with a folder as argument, there. The output depends on the sources and package-lock.json only.
import * as esbuild from "esbuild";
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "dist");

// The licence of the library that becomes part of the page.
const licence = readFileSync(join(here, "node_modules/uplot/LICENSE"), "utf8").trim();

mkdirSync(out, { recursive: true });
await esbuild.build({
  absWorkingDir: here,
  entryPoints: { page: "src/main.js" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2021"],
  charset: "utf8",
  legalComments: "none",
  banner: { js: `/* SPDX-License-Identifier: BSD-3-Clause; with uPlot:\n${licence}\n*/` },
  loader: { ".svg": "dataurl" },
});
copyFileSync(join(here, "src/index.html"), join(out, "index.html"));

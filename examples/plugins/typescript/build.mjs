// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Builds the plugin: one executable file with the program and all packages that it uses.
//
//	node build.mjs PROTO     (the directory of the contract, by default proto)
//
// The file begins with the path of the Node.js that builds it, which runs it as well. Equal
// sources make an equal file, and so an equal checksum. build/ gets the tests.

import { chmod, mkdir, rename } from "node:fs/promises";
import { resolve } from "node:path";
import { build } from "esbuild";

const proto = resolve(process.argv[2] ?? "proto");
const contract = {
  name: "contract",
  setup(b) {
    b.onResolve({ filter: /\.proto$/ }, ({ path }) => ({ path: resolve(proto, path) }));
  },
};
const options = { bundle: true, platform: "node", target: "node20", format: "cjs", loader: { ".proto": "text" }, plugins: [contract], logLevel: "warning" };

await mkdir("bin", { recursive: true });
await build({ ...options, entryPoints: ["src/main.ts"], outfile: "bin/operator.new", banner: { js: `#!${process.execPath}` } });
await chmod("bin/operator.new", 0o755);
await rename("bin/operator.new", "bin/operator");
await build({ ...options, entryPoints: ["tests/operator.test.ts"], outfile: "build/operator.test.cjs" });

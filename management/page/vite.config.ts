// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

import { defineConfig } from 'vite';

// Two files with fixed names, which the node embeds; equal sources give equal bytes.
export default defineConfig({
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: 'dist', emptyOutDir: true, target: 'es2022', modulePreload: false, cssCodeSplit: false, copyPublicDir: false,
    rollupOptions: {
      input: 'src/main.tsx',
      output: { entryFileNames: 'app.js', assetFileNames: 'app.[ext]', codeSplitting: false },
    },
  },
  test: { include: ['test/*.test.ts'] },
} as Parameters<typeof defineConfig>[0]);

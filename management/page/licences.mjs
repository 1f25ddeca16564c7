// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Writes the licences of what is built into the page beside it.
import { readFileSync, writeFileSync } from 'node:fs';

const parts = ['preact', 'uplot'].map(name => {
  const { version } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, 'utf8'));
  return `${name} ${version}\n\n${readFileSync(`node_modules/${name}/LICENSE`, 'utf8').trim()}\n`;
});
writeFileSync('dist/licences.txt', parts.join('\n---\n\n'));

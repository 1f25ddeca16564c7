// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// A browser for tests: every error of a page, and every request that leaves its origin, fails the test in the end.
import { chromium } from 'playwright-core';

// CHROMIUM names the executable.
export async function browser() {
  const faults = [];
  const b = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  return {
    async open(url, width, height, colorScheme = 'light') {
      const page = await b.newPage({ viewport: { width, height }, colorScheme });
      page.setDefaultTimeout(30_000);
      page.on('pageerror', e => faults.push(`error: ${e.message}`));
      // That an answer is missing is what some tests are about; everything else that the console says is a fault.
      page.on('console', m => { if (m.type() === 'error' && !/Failed to load resource/.test(m.text())) faults.push(`console: ${m.text()}`); });
      page.on('request', r => { if (new URL(r.url()).protocol !== 'data:' && new URL(r.url()).origin !== new URL(url).origin) faults.push(`asks elsewhere: ${r.url()}`); });
      await page.goto(url);
      return page;
    },
    fault(text) { faults.push(text); },
    // narrow says whether a page is wider than its window.
    async fits(page, what) {
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (over > 0) faults.push(`${what}: ${over} pixels too wide`);
    },
    async end() {
      await b.close();
      for (const f of faults) console.log(`fault ${f}`);
      process.exit(faults.length > 0 ? 1 : 0);
    },
  };
}

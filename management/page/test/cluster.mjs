// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// The page against a cluster of four that loses a node, and then the node that the page asks. The test that runs this
// kills and starts nodes when a line says what the page shows:
//
//   node cluster.mjs URL VICTIM ENTITY [DIRECTORY FOR PICTURES]
//
// Pictures are taken of all three sizes in light and dark, when the node is lost and its shards have just moved.
import { browser } from './open.mjs';

const [url, victim, entity, pictures] = process.argv.slice(2);
const b = await browser();
const picture = async (page, width) => {
  for (const scheme of pictures ? ['light', 'dark'] : []) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.screenshot({ path: `${pictures}/page-${width}-${scheme}.png` });
  }
};
const desktop = await b.open(url, 1280, 800), phone = await b.open(url, 390, 844, 'dark'), tablet = await b.open(url, 820, 1180, 'light');

await desktop.waitForSelector('.ring .node.up >> nth=3');
await desktop.waitForFunction(() => [...document.querySelectorAll('.members meter')].filter(m => m.value > 0).length === 4);
for (const [page, name] of [[desktop, 'desktop'], [phone, 'phone'], [tablet, 'tablet']]) await b.fits(page, name);
await desktop.focus('.ring .node >> nth=1');
await desktop.keyboard.press('Enter');
await desktop.waitForSelector('.members tr[aria-selected=true]');
await desktop.keyboard.press('Enter');
await desktop.fill('input[aria-label=Entity]', entity);
await desktop.keyboard.press('Enter');
await desktop.waitForSelector('[data-found]');
await desktop.waitForSelector('section[aria-label="Rates"] .lines b');
if (await desktop.locator('section[aria-label="Replicated keys"]').innerText().then(t => !t.includes('nobody lags'))) b.fault('it is not said that nobody lags');
console.log('formed');

await phone.waitForSelector(`[data-node="${victim}"][data-state=lost]`);
await desktop.waitForSelector('.ring .cut', { state: 'attached' });
await desktop.waitForSelector('.alert >> text=cannot be reached');
if (pictures) await desktop.screenshot({ path: `${pictures}/page-1280-unreachable.png` });
console.log('unreachable');
await desktop.waitForSelector(`tr.gone[data-member="${victim}"]`);
await desktop.waitForSelector('.happenings >> text=/downing of .*: down/');
for (const page of [desktop, tablet, phone]) await page.waitForSelector('.ring .moving', { state: 'attached' });
await Promise.all([picture(desktop, 1280), picture(tablet, 820), picture(phone, 390)]);
await desktop.click('button >> text=moves');
await desktop.waitForSelector('.happenings >> text=/shards? of .*→/');
await desktop.waitForFunction(() => [...document.querySelectorAll('.members tr:not(.gone) meter')].filter(m => m.value > 0).length === 3);
console.log('removed');

await desktop.waitForSelector('[data-lost]');
if (!(await desktop.title()).startsWith('⚠')) b.fault('the title does not say that the node is lost');
await b.fits(phone, 'phone, lost');
console.log('lost');
await desktop.waitForSelector('[data-lost]', { state: 'detached' });
await desktop.waitForSelector('.ring .node.up');
console.log('found');
await b.end();

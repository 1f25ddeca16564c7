// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// The page against a cluster of four that loses a node, and then the node that the page asks. The test that runs this
// kills and starts nodes when a line says what the page shows:
//
//   node cluster.mjs URL VICTIM ENTITY [DIRECTORY FOR PICTURES]
import { browser } from './open.mjs';

const [url, victim, entity, pictures] = process.argv.slice(2);
const b = await browser();
const picture = async (page, name, fullPage = false) => { if (pictures) await page.screenshot({ path: `${pictures}/${name}.png`, fullPage }); };
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
await picture(tablet, 'page-820-light', true);
console.log('formed');

await phone.waitForSelector(`[data-node="${victim}"][data-state=lost]`);
await desktop.waitForSelector('.ring .cut', { state: 'attached' });
await desktop.waitForSelector('.alert >> text=cannot be reached');
await picture(phone, 'page-390-dark');
await picture(desktop, 'page-1280-light');
console.log('unreachable');
await desktop.waitForSelector(`tr.gone[data-member="${victim}"]`);
await desktop.waitForSelector('.happenings >> text=/downing of .*: down/');
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

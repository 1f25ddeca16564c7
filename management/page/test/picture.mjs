// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// The page of a simulated run: it is drawn, plays, and is used by keys.
//
//   node picture.mjs FILE-URL [DIRECTORY FOR PICTURES]
import { browser } from './open.mjs';

const [url, pictures] = process.argv.slice(2);
const b = await browser();
for (const [width, height, scheme] of [[1280, 900, 'light'], [820, 1180, 'dark'], [390, 844, 'dark']]) {
  const page = await b.open(url, width, height, scheme), what = `${width}`;
  const clock = () => page.textContent('#clock');
  const drawn = () => page.evaluate(() => ['whole', 'lanes'].map(id => { const c = document.getElementById(id); return new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size; }));
  await page.waitForFunction(() => document.getElementById('clock').textContent.endsWith(' s'));
  await b.fits(page, what);
  if ((await drawn()).some(colours => colours < 5)) b.fault(`${what}: the lanes are not drawn`);
  const steps = [['End', 'Home'], ['n', 'p'], ['ArrowRight', 'ArrowLeft']];
  await page.focus('#lanes');
  await page.keyboard.press('Home');
  for (const [there] of steps) {
    const before = await clock();
    await page.keyboard.press(there);
    await page.waitForFunction(was => document.getElementById('clock').textContent !== was, before);
    await page.keyboard.press('Home');
    await page.waitForFunction(() => document.getElementById('clock').textContent === '0.000 s');
  }
  await page.keyboard.press('ArrowDown');
  await page.waitForSelector('#now tr[aria-selected=true]');
  await page.keyboard.press('Escape');
  await page.keyboard.press(' ');
  await page.waitForFunction(() => parseFloat(document.getElementById('clock').textContent) > 0.2);
  // Paused in the frame that has just moved it, the clock says at once where it stopped.
  const [stopped, later] = await page.evaluate(() => new Promise(done => requestAnimationFrame(() => {
    const clock = () => document.getElementById('clock').textContent;
    document.getElementById('lanes').dispatchEvent(new KeyboardEvent('keydown', { key: ' ', bubbles: true }));
    const stopped = clock();
    setTimeout(() => done([stopped, clock()]), 200);
  })));
  if (later !== stopped) b.fault(`${what}: it stopped at ${stopped} and shows ${later}`);
  if (pictures) { await page.goto(`${url}#49.2,43.2,52.5`); await page.reload(); await page.waitForTimeout(300); await page.screenshot({ path: `${pictures}/run-${width}-${scheme}.png`, fullPage: true }); }
  await page.close();
}
await b.end();

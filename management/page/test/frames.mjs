// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// How long the frames of the page take with many nodes and shards: one line of JSON.
//
//   CHROMIUM=/usr/bin/chromium npm run frames -- [NODES [SHARDS [SECONDS]]]
//
// A server on loopback answers as a node of a cluster in which members come and go and shards move. In the page the time
// between frames is measured, and tasks that take longer than 50 ms are counted: a frame is late by those. Where other
// programs want the processor a task takes longer than it works; so the trace of the browser tells as well how much
// processor time the longest task had (longestCPU), and what for, in ms.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { browser } from './open.mjs';

const [nodes, shards, seconds] = [100, 10_000, 20].map((usual, i) => Number(process.argv[2 + i] ?? usual));
const files = { '/ui': ['../index.html', 'text/html'], '/ui/app.js': ['../dist/app.js', 'text/javascript'], '/ui/app.css': ['../dist/app.css', 'text/css'] };
const id = i => `10.0.${i / 250 | 0}.${i % 250}:7946#${(i + 1).toString(16).padStart(16, '0')}`;
let round = 0;
const all = f => Array.from({ length: nodes }, (_, i) => f(i));
const answers = {
  '/v1/members': () => {
    round++;
    const away = i => i % 17 === round % 17;
    return {
      self: id(0), standing: true, leader: id(0), converged: round % 3 > 0, cluster: '1-1', voters: all(id),
      members: all(i => ({ node: id(i), status: away(i) ? 'leaving' : 'up', age: i + 1, zone: `z${i % 3}`, voter: true, seen: true, unreachableFor: i % 23 === round % 23 ? [id(0), id(1)] : undefined })),
    };
  },
  '/v1/decisions': () => ({
    decisions: Array.from({ length: 100 }, (_, i) => ({
      at: new Date(Date.now() - i * 100).toISOString(), component: 'sharding', topic: 'handoff', subject: `account: shard ${(round * 100 + i) % shards}`, verdict: `moves to ${id(i % nodes)}`, reason: 'least-shard: evens out the load',
    })),
  }),
  '/v1/kinds': () => ({ kinds: [{ name: 'account', shards, hosted: shards / nodes | 0, proxy: false, coordinator: id(0) }] }),
  '/v1/kinds/account/shards': () => ({
    shards: Array.from({ length: shards }, (_, s) => ({ shard: s, home: id((s + (s % 10 === round % 10 ? round : 0)) % nodes), state: s % 50 === round % 50 ? 'stopping' : 'serving', entities: s % 7, stuck: 0, sent: s, passed: 0 })),
  }),
  '/v1/plugins': () => ({ plugins: [] }),
  '/v1/data': () => ({ groups: [] }),
  '/health/ready': () => ({ status: 'ready' }),
};
const server = createServer(async (request, response) => {
  const path = new URL(request.url, 'http://x').pathname;
  if (files[path]) {
    response.setHeader('Content-Type', files[path][1]);
    response.end(await readFile(new URL(files[path][0], import.meta.url)));
  } else if (path === '/metrics') {
    response.end(`quorate_sharding_messages_total{kind="account"} ${round * 100_000}\n`);
  } else if (answers[path]) {
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify(answers[path]()));
  } else {
    response.writeHead(404).end('{"error":"not here"}');
  }
});
await new Promise(done => server.listen(0, '127.0.0.1', done));
const b = await browser();
const page = await b.open(`http://127.0.0.1:${server.address().port}/ui`, 1280, 900);
await page.waitForSelector('svg');
await page.waitForTimeout(3000);
const work = { script: ['FunctionCall', 'RunMicrotasks', 'EvaluateScript'], style: ['UpdateLayoutTree'], layout: ['Layout'], paint: ['PrePaint', 'Paint', 'Layerize', 'Commit'] };
const trace = await page.context().newCDPSession(page), events = [];
trace.on('Tracing.dataCollected', e => events.push(...e.value));
await trace.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig: { includedCategories: ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline'], excludedCategories: ['*'] } });
const measured = await page.evaluate(seconds => new Promise(done => {
  const gaps = [], tasks = [];
  new PerformanceObserver(list => { for (const e of list.getEntries()) tasks.push(e.duration); }).observe({ type: 'longtask' });
  let last = performance.now();
  const end = last + seconds * 1000;
  const frame = now => {
    gaps.push(now - last);
    last = now;
    if (now < end) { requestAnimationFrame(frame); return; }
    gaps.sort((x, y) => x - y);
    const at = share => Math.round(gaps[Math.min(gaps.length - 1, Math.floor(gaps.length * share))] * 10) / 10;
    done({ frames: gaps.length, p50: at(0.5), p99: at(0.99), longest: at(1), tasksOver50: tasks.length, longestTask: Math.round(Math.max(0, ...tasks)) });
  };
  requestAnimationFrame(frame);
}), seconds);
const traced = new Promise(done => trace.once('Tracing.tracingComplete', done));
await trace.send('Tracing.end');
await traced;
console.log(JSON.stringify({ name: 'page/frame', unit: 'ms', nodes, shards, seconds, ...measured, longestCPU: mostWork(events) }));
server.close();
await b.end();

// mostWork returns the processor time of the task of the page that had the most, and of its parts.
function mostWork(events) {
  const whole = events.filter(e => e.ph === 'X' && e.tdur > 0), calls = new Map();
  for (const e of whole) if (e.name === 'Layout') calls.set(`${e.pid}/${e.tid}`, (calls.get(`${e.pid}/${e.tid}`) ?? 0) + 1);
  const page = [...calls].sort((a, b) => b[1] - a[1])[0]?.[0]; // The thread that lays out most is that of the page.
  const mine = whole.filter(e => `${e.pid}/${e.tid}` === page), ms = n => Math.round(n / 100) / 10;
  const task = mine.filter(e => e.name === 'RunTask').sort((a, b) => b.tdur - a.tdur)[0];
  if (!task) throw new Error('the trace has no task of the page');
  const inside = mine.filter(e => e !== task && e.ts >= task.ts && e.ts + e.dur <= task.ts + task.dur);
  // What runs within another of its kind counts once.
  const sum = names => { let end = 0, n = 0; for (const e of inside.filter(e => names.includes(e.name)).sort((a, b) => a.ts - b.ts)) if (e.ts >= end) { n += e.tdur; end = e.ts + e.dur; } return n; };
  return { task: ms(task.tdur), ...Object.fromEntries(Object.entries(work).map(([name, names]) => [name, ms(sum(names))])) };
}

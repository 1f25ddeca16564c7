// Draws a run. First what is read from the data; then the state at a moment; then the two canvases,
// the whole run above and the lanes below; then the tables; then the player, the keys and the pointer.
'use strict';
(() => {
const run = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const LIFE = 0, VIEW = 1, BLOCKED = 2, HOSTS = 3, LEADER = 4, AGREED = 5, SHARD = 6, UNREACHABLE = 16;
const lanes = run.lanes || [], changes = run.changes || [], messages = run.messages || [], marks = run.marks || [];
const n = lanes.length, end = Math.max(run.end, 1);
const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;

// ---- What is read from the data: for each lane, segments of what holds.
const key = (k, a, b) => (k * 70000 + a) * 64 + b;
const lane = Array.from({ length: n }, () => ({ life: [], status: [], lost: [], hosts: [], cut: [], shards: [] }));
const checkpoints = []; // The state before every 2,000th change.
let shardsAtAll = false;
{
  const state = new Map(), lost = new Array(n).fill(0), cut = new Array(n).fill(0), shards = new Array(n).fill(0);
  changes.forEach(([t, k, a, b, v], i) => {
    if (i % 2000 === 0) checkpoints.push(new Map(state));
    const at = key(k, a, b), was = state.get(at) || 0;
    v ? state.set(at, v) : state.delete(at);
    if (k === LIFE) lane[a].life.push([t, v]);
    if (k === VIEW && a === b) lane[a].status.push([t, v]);
    if (k === VIEW && a !== b && bad(was) !== bad(v)) lane[b].lost.push([t, lost[b] += bad(v) ? 1 : -1]);
    if (k === HOSTS) lane[a].hosts.push([t, v]);
    if (k === BLOCKED) for (const x of [a, b]) lane[x].cut.push([t, cut[x] += v - was]);
    if (k === SHARD && b < n) { shardsAtAll = true; lane[b].shards.push([t, shards[b] += v - was]); }
  });
}
function bad(v) { return v >= UNREACHABLE || (v & 15) >= 8; } // Unreachable, down or removed.

// at returns the state at a moment: what key holds is 0 if it is not there.
let cached = { i: -1, state: null };
function at(t) {
  let lo = 0, hi = changes.length;
  while (lo < hi) { const mid = (lo + hi) >> 1; changes[mid][0] <= t ? lo = mid + 1 : hi = mid; }
  if (cached.i === lo) return cached.state;
  const from = Math.max(Math.min(Math.floor(lo / 2000), checkpoints.length - 1), 0);
  const state = new Map(checkpoints[from]);
  for (let i = from * 2000; i < lo; i++) { const [, k, a, b, v] = changes[i], x = key(k, a, b); v ? state.set(x, v) : state.delete(x); }
  cached = { i: lo, state };
  return state;
}
function first(list, t) { // The index of the first element at or after t.
  let lo = 0, hi = list.length;
  while (lo < hi) { const mid = (lo + hi) >> 1; (list[mid].t === undefined ? list[mid][0] : list[mid].t) < t ? lo = mid + 1 : hi = mid; }
  return lo;
}

// ---- What is shown: the moment, the window of time, the chosen lane.
let now = (run.violation || marks.find(m => m.k === 0) || { t: end / 2 }).t, from = 0, to = end, chosen = -1, playing = false;
const least = 2000; // The shortest window, in microseconds.
const seconds = t => (t / 1e6).toFixed(3) + ' s';
function short(t, step) { return (t / 1e6).toFixed(step < 1e3 ? 4 : step < 1e4 ? 3 : step < 1e5 ? 2 : step < 1e6 ? 1 : 0) + ' s'; }

let css;
function colours() {
  const c = getComputedStyle(document.documentElement), read = x => c.getPropertyValue('--' + x).trim();
  css = { bg: read('bg'), fg: read('fg'), weak: read('weak'), line: read('line'), panel: read('panel'), accent: read('accent'), bad: read('bad'), none: read('none'), cut: read('cut'), msg: read('msg'), host: read('host'), status: run.statuses.map(s => read(s) || read('none')) };
}
function canvas(id, height) {
  const c = $(id), w = c.clientWidth, r = Math.min(devicePixelRatio || 1, 3);
  c.style.height = height + 'px';
  if (c.width !== Math.round(w * r) || c.height !== Math.round(height * r)) { c.width = Math.round(w * r); c.height = Math.round(height * r); }
  const g = c.getContext('2d');
  g.setTransform(r, 0, 0, r, 0, 0);
  g.clearRect(0, 0, w, height);
  g.font = '12px system-ui, sans-serif';
  return [g, w, height];
}
const gutter = () => Math.min(88, 12 + Math.max(24, ...lanes.map(x => x.length * 7.2)));

// ---- The whole run: messages, lost ones, marks of the script, the window.
function drawWhole() {
  const [g, w, h] = canvas('whole', 52), x = t => t / end * w;
  const most = Math.max(1, ...run.sent || []), bucket = run.width * 1e6;
  (run.sent || []).forEach((sent, i) => {
    const a = x(i * bucket), b = Math.max(x((i + 1) * bucket) - a - .5, .5), lost = run.lost[i];
    g.fillStyle = css.none; g.fillRect(a, h - 4 - (h - 14) * sent / most, b, (h - 14) * sent / most);
    if (lost) { const tall = Math.max((h - 14) * lost / most, 2); g.fillStyle = css.bad; g.fillRect(a, h - 4 - tall, b, tall); }
  });
  g.fillStyle = css.accent;
  for (const m of marks) if (m.k === 0) g.fillRect(x(m.t), 2, 1, 5);
  if (run.violation) { g.fillStyle = css.bad; g.fillRect(x(run.violation.t) - 1.5, 0, 3, h); }
  g.strokeStyle = css.accent; g.lineWidth = 2;
  g.globalAlpha = .12; g.fillStyle = css.accent; g.fillRect(x(from), 0, x(to) - x(from), h); g.globalAlpha = 1;
  g.strokeRect(Math.max(x(from), 1), 1, Math.max(Math.min(x(to), w - 1) - Math.max(x(from), 1), 2), h - 2);
  g.fillStyle = css.fg; g.fillRect(x(now) - 1, 0, 2, h);
  const c = $('whole');
  c.setAttribute('aria-valuemax', (end / 1e6).toFixed(1)); c.setAttribute('aria-valuenow', (now / 1e6).toFixed(3)); c.setAttribute('aria-valuetext', seconds(now));
}

// ---- The lanes.
const top0 = 30;
let row = 34;
function segments(list, f) { // Calls f for each segment that is in the window.
  for (let i = 0; i < list.length; i++) {
    const a = list[i][0], b = i + 1 < list.length ? list[i + 1][0] : end;
    if (b >= from && a <= to && list[i][1]) f(Math.max(a, from), Math.min(b, to), list[i][1]);
  }
}
function drawLanes() {
  row = n > 24 ? 20 : n > 12 ? 27 : 36;
  const [g, w, h] = canvas('lanes', top0 + n * row + 8), left = gutter();
  const x = t => left + (t - from) / (to - from) * (w - left);
  g.textBaseline = 'middle';
  const tall = row > 24 ? 14 : 9, y = i => top0 + i * row + row / 2;
  lane.forEach((l, i) => {
    if (i === chosen) { g.fillStyle = css.panel; g.fillRect(0, top0 + i * row, w, row); }
    segments(l.cut, (a, b, v) => { g.fillStyle = css.cut; g.globalAlpha = .45 + .55 * Math.min(v / Math.max(n - 1, 1), 1); g.fillRect(x(a), top0 + i * row + 1, Math.max(x(b) - x(a), 1), row - 2); });
    g.globalAlpha = 1;
    g.fillStyle = css.none; g.fillRect(left, y(i), w - left, 1);
    segments(l.life, (a, b, v) => { g.fillStyle = css.none; g.fillRect(x(a), y(i) - tall / 2, Math.max(x(b) - x(a), 1), tall); });
    segments(l.status, (a, b, v) => {
      g.fillStyle = css.status[v & 15] || css.none;
      const wide = x(b) - x(a);
      g.fillRect(x(a), y(i) - tall / 2, Math.max(wide, 1), tall);
      if (tall > 12 && wide > 62) { g.fillStyle = css.bg; g.font = '600 11px system-ui, sans-serif'; g.fillText(run.statuses[v & 15], x(a) + 5, y(i) + .5); g.font = '12px system-ui, sans-serif'; }
    });
    segments(l.life, (a, b, v) => { if (v === 2) hatch(g, x(a), y(i) - tall / 2, x(b) - x(a), tall); });
    segments(l.lost, (a, b, v) => { g.fillStyle = css.bad; g.fillRect(x(a), y(i) - tall / 2 - 4, Math.max(x(b) - x(a), 1), v > (n - 1) / 2 ? 3 : 1.5); });
    segments(l.hosts, (a, b) => { g.fillStyle = css.host; g.fillRect(x(a), y(i) + tall / 2 + 2, Math.max(x(b) - x(a), 1), 2); });
  });
  drawMessages(g, x, y);
  const last = new Array(n + 1).fill(-99);
  for (let i = first(marks, from); i < marks.length && marks[i].t <= to; i++) {
    const m = marks[i], crowded = x(m.t) - last[m.l + 1] < 9;
    if (!crowded) last[m.l + 1] = x(m.t);
    mark(g, m, x, y, tall, h, crowded);
  }
  if (run.violation && run.violation.t >= from && run.violation.t <= to) { g.fillStyle = css.bad; g.fillRect(x(run.violation.t) - 1, top0 - 10, 2, h); }
  if (run.left.from > from) { g.fillStyle = css.bg; g.globalAlpha = .8; g.fillRect(left, top0, x(Math.min(run.left.from, to)) - left, h); g.globalAlpha = 1; }
  axis(g, x, w, left);
  g.fillStyle = css.bg; g.fillRect(0, 0, left - 4, h);
  lanes.forEach((name, i) => {
    if (i === chosen) { g.fillStyle = css.panel; g.fillRect(0, top0 + i * row, left - 4, row); }
    g.fillStyle = css.fg; g.textAlign = 'left'; g.font = (i === chosen ? '700' : '600') + ' 12px system-ui, sans-serif';
    g.fillText(name.length > 11 ? name.slice(0, 10) + '…' : name, 4, y(i));
  });
  g.font = '12px system-ui, sans-serif';
  if (now >= from && now <= to) {
    g.fillStyle = css.fg; g.fillRect(x(now) - .75, 16, 1.5, h);
    g.beginPath(); g.moveTo(x(now) - 5, 14); g.lineTo(x(now) + 5, 14); g.lineTo(x(now), 21); g.fill();
  }
}
function hatch(g, x, y, w, h) { // A frozen node.
  g.save(); g.beginPath(); g.rect(x, y, w, h); g.clip(); g.strokeStyle = css.bg; g.lineWidth = 2; g.beginPath();
  for (let i = Math.max(x, 0) - h; i < Math.min(x + w, 6000); i += 6) { g.moveTo(i, y + h); g.lineTo(i + h, y); }
  g.stroke(); g.restore();
}
function mark(g, m, x, y, tall, h, crowded) { // Of a crowd the first one is drawn in full.
  const p = x(m.t);
  if (m.k === 0) { g.fillStyle = css.accent; g.globalAlpha = .5; g.fillRect(p, top0 - 8, 1, h); g.globalAlpha = 1; if (crowded) return; g.beginPath(); g.moveTo(p, top0 - 10); g.lineTo(p + 6, top0 - 7); g.lineTo(p, top0 - 4); g.fill(); return; }
  if (m.l < 0) return;
  if (crowded && m.k !== 4 && m.k !== 2) { g.fillStyle = css.fg; g.fillRect(p - .5, y(m.l) - 2, 1, 4); return; }
  const q = y(m.l);
  g.strokeStyle = css.fg; g.lineWidth = 1.5; g.fillStyle = css.bg;
  g.beginPath();
  if (m.k === 1) { g.moveTo(p, q - tall / 2 - 2); g.lineTo(p, q + tall / 2 + 2); g.stroke(); }
  else if (m.k === 2) { g.moveTo(p - 4, q - 4); g.lineTo(p + 4, q + 4); g.moveTo(p + 4, q - 4); g.lineTo(p - 4, q + 4); g.stroke(); }
  else if (m.k === 3) { g.moveTo(p, q - 5); g.lineTo(p + 5, q); g.lineTo(p, q + 5); g.lineTo(p - 5, q); g.closePath(); g.fill(); g.stroke(); }
  else { g.rect(p - 3.5, q - 3.5, 7, 7); g.fillStyle = css.bad; g.fill(); g.stroke(); }
}
// drawMessages draws at most 4,000 of those that are in the window; of more, each so-many-th.
function drawMessages(g, x, y) {
  const kind = +$('kind').value;
  shown = [0, 0];
  if (kind === -3) return;
  const slack = 15e6, a = first(messages, from - slack), b = first(messages, to); // None is under way for longer.
  const list = [];
  for (let i = a; i < b; i++) {
    const m = messages[i];
    if (Math.max(m[1], m[0]) >= from && (kind === -1 || kind === m[4] || kind === -2 && !m[1])) list.push(m);
  }
  const each = Math.ceil(list.length / 4000);
  shown = [Math.ceil(list.length / Math.max(each, 1)), list.length];
  const alpha = Math.min(.75, Math.max(.06, 160 / (list.length + 1)));
  for (const lost of [false, true]) {
    g.strokeStyle = lost ? css.bad : css.msg; g.lineWidth = 1; g.globalAlpha = lost ? Math.min(alpha * 2, .9) : alpha;
    g.beginPath();
    for (let i = 0; i < list.length; i += Math.max(each, 1)) {
      const [t, arrives, p, q] = list[i];
      if (lost !== !arrives) continue;
      const x0 = x(t), y0 = y(p), y1 = lost ? y0 + (y(q) - y0) * .5 : y(q), x1 = lost ? x0 + 2 : x(arrives);
      g.moveTo(x0, y0); g.lineTo(x1, y1);
      if (lost) { g.moveTo(x1 - 3, y1 - 3); g.lineTo(x1 + 3, y1 + 3); g.moveTo(x1 + 3, y1 - 3); g.lineTo(x1 - 3, y1 + 3); }
      else if (x1 - x0 > 4) { const up = y1 > y0 ? -1 : 1; g.moveTo(x1 - 3, y1 + up * 5); g.lineTo(x1, y1); g.lineTo(x1 + 1.5, y1 + up * 5.5); }
    }
    g.stroke();
  }
  g.globalAlpha = 1;
}
let shown = [0, 0];
function axis(g, x, w, left) {
  const want = (to - from) / Math.max((w - left) / 90, 1);
  const step = [1, 2, 5].flatMap(f => [1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9].map(e => f * e)).sort((a, b) => a - b).find(s => s >= want) || 1e10;
  g.fillStyle = css.weak; g.textAlign = 'center';
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    g.fillRect(x(t), 16, 1, 5);
    const p = Math.min(Math.max(x(t), left + 18), w - 22);
    g.fillText(short(t, step), p, 8);
  }
  g.textAlign = 'left';
}

// ---- The tables: nodes and views at the moment, events.
function cell(text, title) { const td = document.createElement('td'); td.textContent = text; if (title) td.title = title; return td; }
function name(v) { return v ? (run.statuses[v & 15] || '?') + (v >= UNREACHABLE ? ', unreachable' : '') : 'not a member'; }
// brief leaves out what tells no nodes of a run apart: ports, where all are the same, and most of an incarnation.
const ports = lanes.every(l => !l.includes(':'));
function brief(text) {
  text = text.replace(/#([0-9a-f]{4})[0-9a-f]{4,12}\b/g, '#$1');
  return ports ? text.replace(/\b([a-z][\w.-]*):\d{2,5}(?=[#,;:\s)\]]|$)/g, '$1') : text;
}
function drawTables() {
  const s = at(now), get = (k, a, b) => s.get(key(k, a, b)) || 0;
  $('nowhead').textContent = 'At ' + seconds(now);
  const shards = lanes.map(() => []);
  if (shardsAtAll) for (const k of s.keys()) { const b = k % 64, rest = (k - b) / 64; if (Math.floor(rest / 70000) === SHARD) shards[b].push(rest % 70000); }
  $('now').tBodies[0].replaceChildren(...lanes.map((l, i) => {
    const tr = document.createElement('tr'), life = get(LIFE, i, 0), own = get(VIEW, i, i), leader = get(LEADER, i, 0);
    tr.setAttribute('aria-selected', i === chosen);
    tr.onclick = () => { chosen = chosen === i ? -1 : i; draw(); };
    const says = cell(life === 0 ? 'no node' : (life === 2 ? 'frozen, ' : '') + (own ? name(own) : 'in no cluster') + (get(AGREED, i, 0) ? '' : own ? ', not agreed' : ''));
    const dot = document.createElement('span'); dot.className = 'dot'; dot.style.background = life ? css.status[own & 15] : css.none; says.prepend(dot);
    const others = {};
    for (let j = 0; j < n; j++) if (j !== i && get(LIFE, j, 0)) { const v = name(get(VIEW, j, i)); others[v] = (others[v] || 0) + 1; }
    const list = Object.entries(others).sort((a, b) => b[1] - a[1]);
    const text = list.map(([v, c]) => list.length > 1 ? c + ': ' + v : v).join('; ') || '–';
    const mine = shards[i].sort((a, b) => a - b);
    const hosts = get(HOSTS, i, 0) ? (shardsAtAll ? mine.length + ' shards' : 'may') : mine.length ? mine.length + ' shards, may not' : 'may not';
    tr.append(cell(l), says, cell(text), cell(life && leader ? lanes[leader - 1] : '–'), cell(hosts, mine.length ? 'shards ' + mine.join(' ') : ''));
    return tr;
  }));
  drawViews(get);
}
let viewCells = null;
function drawViews(get) {
  const table = $('views');
  table.classList.toggle('many', n > 16);
  if (!viewCells) {
    const head = document.createElement('tr');
    head.append(document.createElement('th'), ...lanes.map(l => { const th = document.createElement('th'); th.textContent = n > 16 ? l.replace(/^\D+/, '') : l; return th; }));
    viewCells = [];
    table.append(head, ...lanes.map(l => {
      const tr = document.createElement('tr'), th = document.createElement('th'); th.textContent = l; tr.append(th);
      viewCells.push(lanes.map(() => { const td = document.createElement('td'); tr.append(td); return td; }));
      return tr;
    }));
  }
  viewCells.forEach((cells, i) => cells.forEach((td, j) => {
    const v = get(LIFE, i, 0) ? get(VIEW, i, j) : 0, cut = get(BLOCKED, i, j);
    td.style.background = v ? css.status[v & 15] : css.none; td.style.opacity = v ? 1 : .35;
    td.textContent = v >= UNREACHABLE ? '×' : '';
    td.className = cut ? 'cut' : '';
    td.title = lanes[i] + ' sees ' + lanes[j] + ': ' + name(v) + (cut ? '; no message passes this way' : '');
  }));
}
let items = [];
function fillEvents() {
  const only = $('only').value;
  items = marks.filter(m => only === '' || +only === m.k).filter(m => chosen < 0 || m.l === chosen || m.k === 0);
  if (run.violation) { items.push({ t: run.violation.t, k: 9, l: -1, x: run.violation.text }); items.sort((a, b) => a.t - b.t); }
}
let drawnAt = -2;
function drawEvents() { // 120 around the moment.
  const i = Math.max(upTo(now) - 1, 0), a = Math.max(i - 40, 0);
  if (drawnAt === i) return;
  drawnAt = i;
  const list = $('events');
  list.replaceChildren(...items.slice(a, a + 120).map((m, j) => {
    const li = document.createElement('li'), t = document.createElement('span'), l = document.createElement('span'), x = document.createElement('span');
    t.className = 't'; l.className = 'n'; x.className = 'x';
    t.textContent = seconds(m.t); l.textContent = m.k === 9 ? '!' : m.l < 0 ? 'script' : lanes[m.l]; x.textContent = brief(m.x); x.title = m.x;
    li.append(t, l, x);
    li.classList.toggle('at', a + j === i && m.t <= now); li.classList.toggle('later', m.t > now); li.classList.toggle('bad', m.k === 9);
    li.onclick = () => go(m.t);
    return li;
  }));
  const here = list.children[i - a];
  if (here) list.scrollTop = here.offsetTop - list.clientHeight / 3;
}
function upTo(t) { let lo = 0, hi = items.length; while (lo < hi) { const mid = (lo + hi) >> 1; items[mid].t <= t ? lo = mid + 1 : hi = mid; } return lo; }

// ---- The player.
let wanted = false, lastChosen = -2;
function draw() {
  if (wanted) return;
  wanted = true;
  requestAnimationFrame(() => {
    wanted = false;
    if (lastChosen !== chosen) { lastChosen = chosen; drawnAt = -2; fillEvents(); }
    drawWhole(); drawLanes(); drawTables(); drawEvents();
    $('clock').textContent = seconds(now);
    if (!playing) remember();
  });
}
// remember puts the moment and the window into the address, which can be handed on.
function remember() {
  try { history.replaceState(null, '', `#${(now / 1e6).toFixed(6)},${(from / 1e6).toFixed(6)},${(to / 1e6).toFixed(6)}`); } catch { /* Where that is not allowed, nothing is remembered. */ }
}
function recall() {
  const parts = location.hash.slice(1).split(',').map(x => parseFloat(x) * 1e6);
  if (parts.length !== 3 || !parts.every(Number.isFinite)) return false;
  window_(parts[1], parts[2]); now = Math.min(Math.max(parts[0], 0), end);
  return true;
}
function window_(a, b) {
  const wide = Math.min(Math.max(b - a, least), end);
  from = Math.min(Math.max(a, 0), end - wide); to = from + wide;
}
function go(t, keep) {
  now = Math.min(Math.max(t, 0), end);
  const wide = to - from;
  if (!keep && (now < from || now > to)) window_(now - wide / 2, now + wide / 2);
  if (keep && now > from + wide * .85 && to < end) window_(now - wide * .15, now + wide * .85);
  draw();
}
function zoom(f, around) {
  const c = around === undefined ? (now >= from && now <= to ? now : (from + to) / 2) : around;
  const wide = Math.min(Math.max((to - from) * f, least), end), share = (c - from) / (to - from);
  window_(c - wide * share, c + wide * (1 - share)); draw();
}
let lastFrame = 0;
function play(on) {
  playing = on;
  const b = $('play'); b.querySelector('path').setAttribute('d', on ? 'M4 3h3v10H4zM9 3h3v10H9z' : 'M5 3l8 5-8 5z'); b.setAttribute('aria-label', on ? 'Pause' : 'Play');
  if (!on) { // At once: what the last frame has moved is drawn with the next one only.
    $('clock').textContent = seconds(now); draw();
    return;
  }
  if (now >= end) now = from = 0, window_(0, to);
  if (to - from === end && end > 3e7) window_(now - 3e6, now + 17e6); // From the whole run to a window in which much can be seen.
  lastFrame = performance.now(); requestAnimationFrame(frame);
}
function frame(t) {
  if (!playing) return;
  const step = Math.min(t - lastFrame, 100) * 1e3 * +$('speed').value;
  lastFrame = t;
  if (calm) { const i = upTo(now); now += step; if (upTo(now) !== i) go(now, true); $('clock').textContent = seconds(now); } else go(now + step, true);
  if (now >= end) return play(false);
  requestAnimationFrame(frame);
}
function event(by) {
  const i = upTo(now), t = by > 0 ? items[i] : items.slice(0, i).reverse().find(m => m.t < now);
  if (t) go(t.t);
}
function violation() { if (run.violation) { window_(run.violation.t - 5e6, run.violation.t + 1e6); go(run.violation.t); } }
function choose(by) { chosen = Math.min(Math.max(chosen + by, -1), n - 1); draw(); }

const keys = {
  ' ': () => play(!playing), ArrowRight: e => go(now + (to - from) * (e.shiftKey ? .1 : .01)), ArrowLeft: e => go(now - (to - from) * (e.shiftKey ? .1 : .01)),
  ArrowUp: () => choose(-1), ArrowDown: () => choose(1), Escape: () => choose(-n - 1),
  '+': () => zoom(.5), '=': () => zoom(.5), '-': () => zoom(2), 0: () => { window_(0, end); draw(); },
  n: () => event(1), p: () => event(-1), v: violation, Home: () => go(0), End: () => go(end),
};
document.addEventListener('keydown', e => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest('select, summary') || e.key === ' ' && e.target.closest('button')) return;
  const scrolls = e.target.id === 'events' && e.key.startsWith('Arrow');
  const f = keys[e.key];
  if (f && !scrolls) { f(e); e.preventDefault(); }
});
$('play').onclick = () => play(!playing); $('next').onclick = () => event(1); $('back').onclick = () => event(-1);
$('in').onclick = () => zoom(.5); $('out').onclick = () => zoom(2); $('all').onclick = keys[0];
if ($('broken')) $('broken').onclick = violation;
$('kind').onchange = draw; $('only').onchange = () => { lastChosen = -2; draw(); };
run.kinds && run.kinds.map((k, i) => [k, i]).sort((a, b) => b[0].sent - a[0].sent).forEach(([k, i]) => $('kind').add(new Option(k.name, i)));

// ---- The pointer: on the whole run it moves the window; on the lanes it drags them, a tap sets the
// moment and the lane, two fingers or ctrl and the wheel zoom.
{
  const c = $('whole');
  const move = e => { const t = e.offsetX / c.clientWidth * end, wide = to - from; if (wide < end) window_(t - wide / 2, t + wide / 2); go(t, false); };
  c.onpointerdown = e => { c.setPointerCapture(e.pointerId); move(e); };
  c.onpointermove = e => { if (e.buttons) move(e); };
}
{
  const c = $('lanes'), down = new Map();
  const time = px => from + (px - gutter()) / (c.clientWidth - gutter()) * (to - from);
  let moved = 0, spread = 0;
  c.onpointerdown = e => { c.setPointerCapture(e.pointerId); down.set(e.pointerId, e); moved = 0; spread = 0; };
  c.onpointermove = e => {
    if (!down.has(e.pointerId)) return;
    const was = down.get(e.pointerId); down.set(e.pointerId, e);
    const all = [...down.values()];
    if (all.length === 2) {
      const wide = Math.abs(all[0].offsetX - all[1].offsetX) + 1;
      if (spread) zoom(spread / wide, time((all[0].offsetX + all[1].offsetX) / 2));
      spread = wide; moved = 99; return;
    }
    moved += Math.abs(e.offsetX - was.offsetX);
    if (moved > 4) { const by = (was.offsetX - e.offsetX) / (c.clientWidth - gutter()) * (to - from); window_(from + by, to + by); draw(); }
  };
  c.onpointerup = e => {
    if (moved <= 4 && down.size === 1) {
      const i = Math.floor((e.offsetY - top0) / row);
      if (e.offsetX < gutter()) { chosen = i >= 0 && i < n && i !== chosen ? i : -1; draw(); } else go(time(e.offsetX));
    }
    down.delete(e.pointerId);
  };
  c.onpointercancel = e => down.delete(e.pointerId);
  c.addEventListener('wheel', e => {
    if (!e.ctrlKey && !e.shiftKey && Math.abs(e.deltaX) <= Math.abs(e.deltaY)) return;
    e.preventDefault();
    if (e.ctrlKey) zoom(e.deltaY > 0 ? 1.25 : .8, time(e.offsetX)); else { const by = (e.deltaX || e.deltaY) / c.clientWidth * (to - from); window_(from + by, to + by); draw(); }
  }, { passive: false });
}

// ---- Around it: the legend, and what is left out.
function legend() {
  const used = new Set(changes.filter(c => c[1] === VIEW).map(c => c[4] & 15));
  const item = (style, text, thin) => { const s = document.createElement('span'), i = document.createElement('i'); i.style.cssText = style; if (thin) i.className = 'thin'; s.append(i, text); return s; };
  $('legend').replaceChildren(...run.statuses.map((s, v) => v && used.has(v) ? item('background:' + css.status[v], s) : null).filter(Boolean),
    item('background:' + css.none, 'lives, in no cluster'), item(`background:repeating-linear-gradient(135deg, ${css.none} 0 3px, ${css.bg} 3px 5px)`, 'frozen'),
    item('background:' + css.bad, 'unreachable or down for others', true), item('background:' + css.host, 'may host', true), item('background:' + css.cut, 'links are cut'),
    ...[['◇', 'decision'], ['✕', 'ends'], ['■', 'fences another'], ['▸', 'what is done to the cluster']].map(([sign, text]) => { const s = document.createElement('span'), b = document.createElement('b'); b.textContent = sign + ' '; b.style.color = sign === '■' ? css.bad : sign === '▸' ? css.accent : css.fg; s.append(b, text); return s; }));
}
{
  const l = run.left, drawn = messages.length, says = [];
  says.push(l.messages ? `Drawn are ${drawn} of ${drawn + l.messages} messages: the first ${l.few} of each kind in each second, and the last ones. Those in the strip above the lanes are counted in full.` : `All ${drawn} messages are drawn.`);
  if (l.lanes) says.push(`${l.lanes}${l.lanes === 10000 ? ' or more' : ''} further nodes have no lane.`);
  if (l.changes) says.push(`States are shown from ${seconds(l.from)} on: ${l.changes} earlier changes are left out.`);
  if (l.marks) says.push(`${l.marks} events in the middle are left out.`);
  if (shardsAtAll) says.push('Which shards a node hosts is looked at once in each second.');
  $('left').textContent = says.join(' ');
}
colours(); legend(); fillEvents();
if (!recall() && run.violation) violation();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { colours(); legend(); draw(); });
new ResizeObserver(draw).observe(document.body);
draw();
})();

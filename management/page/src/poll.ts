// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Asks the node again and again: what changes quickly each second, the rest less often. One round at a time is under
// way; none while nobody looks at the page.

import { get, Refused, text } from './api';
import type { Decision, Group, Kind, Members, Plugin, Shard } from './api';
import { bounds, totals, withDecisions, withKinds, withLoss, withMembers, withTotals } from './state';
import type { State } from './state';

const pause = 1000;

// part asks for something that the node may not have. What is missing is noted with the reason.
async function part(s: State, name: string, f: () => Promise<(s: State) => State>): Promise<State> {
  try {
    const change = await f(), missing = { ...s.missing };
    delete missing[name];
    return { ...change(s), missing };
  } catch (e) {
    if (!(e instanceof Refused)) throw e;
    return { ...s, missing: { ...s.missing, [name]: e.message } };
  }
}

async function kinds(): Promise<(s: State) => State> {
  const list = (await get<{ kinds: Kind[] | null }>('v1/kinds')).kinds ?? [], shards = new Map<string, Shard[]>();
  for (const k of list.slice(0, bounds.kinds)) {
    if (k.shards <= bounds.shards) shards.set(k.name, (await get<{ shards: Shard[] }>(`v1/kinds/${encodeURIComponent(k.name)}/shards`)).shards);
  }
  return s => withKinds(s, list, shards, Date.now());
}

async function ready(): Promise<(s: State) => State> {
  try {
    const status = await get<{ warnings?: string[] }>('health/ready');
    return s => ({ ...s, ready: { ok: true, text: (status.warnings ?? []).join(' ') } });
  } catch (e) {
    if (!(e instanceof Refused) || e.status !== 503) throw e;
    return s => ({ ...s, ready: { ok: false, text: e.message } });
  }
}

async function round(s: State, n: number): Promise<State> {
  const members = await get<Members>('v1/members');
  s = withMembers(s, members, Date.now());
  s = await part(s, 'health', ready);
  s = await part(s, 'decisions', async () => { const d = (await get<{ decisions: Decision[] }>(`v1/decisions?limit=${bounds.decisions}`)).decisions; return x => withDecisions(x, d); });
  if (n % 2 === 0) {
    s = await part(s, 'kinds', kinds);
    s = await part(s, 'rates', async () => { const sums = totals(await text('metrics')); return x => withTotals(x, sums, Date.now()); });
  }
  if (n % 5 === 0) {
    s = await part(s, 'plugins', async () => { const p = (await get<{ plugins: Plugin[] | null }>('v1/plugins')).plugins ?? []; return x => ({ ...x, plugins: p }); });
    s = await part(s, 'data', async () => { const g = (await get<{ groups: Group[] | null }>('v1/data')).groups ?? []; return x => ({ ...x, groups: g }); });
  }
  return s;
}

// poll calls show after each round, for as long as the page is there.
export async function poll(state: State, show: (s: State) => void): Promise<never> {
  for (let n = 0; ; n++) {
    try {
      state = await round(state, n);
    } catch (e) {
      state = withLoss(state, e instanceof Refused ? e.message : 'no answer', Date.now());
      n = -1; // Everything anew when the node is found again.
    }
    show(state);
    await new Promise(done => setTimeout(done, pause));
    if (document.hidden) await new Promise<void>(done => document.addEventListener('visibilitychange', () => done(), { once: true }));
  }
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// What the page knows: the last answers, and what follows from several of them, in bounded room. Everything here
// is a function of what it is given, so that it is tested without a browser and without a node.

import type { Decision, Group, Kind, Member, Members, Plugin, Shard } from './api';

export const bounds = { moves: 100, decisions: 200, gone: 16, goneFor: 60_000, samples: 300, shards: 20_000, kinds: 16 };

// A move is all shards of a kind that one look found at another home than the look before, gone from one node to one other.
export interface Move { at: number; kind: string; shard: number; shards: number; from: string; to: string }
export interface KindState extends Kind { homes: string[]; entities: number; waiting: number; stuck: number; homeless: number; stopping: number }
export interface Gone { at: number; member: Member }
export interface Sample { at: number; totals: Record<string, number> }

export interface State {
  members?: Members;
  ready?: { ok: boolean; text: string };
  kinds: KindState[];
  hosted: Map<string, number>; // Shards of all kinds by node.
  decisions: Decision[]; // The latest first.
  moves: Move[]; // The latest first.
  moved: number;
  gone: Gone[];
  plugins: Plugin[];
  groups: Group[];
  samples: Sample[];
  missing: Record<string, string>; // What the node does not answer, and why.
  lost?: { since: number; why: string };
  seen: number; // When the node answered last.
}

export const empty = (): State => ({
  kinds: [], hosted: new Map(), decisions: [], moves: [], moved: 0, gone: [], plugins: [], groups: [], samples: [], missing: {}, seen: 0,
});

// short is a node without its incarnation.
export const short = (node: string | undefined): string => (node ?? '').replace(/#.*$/, '');

// brief leaves most of each incarnation out.
export const brief = (text: string): string => text.replace(/#([0-9a-f]{4})[0-9a-f]{4,12}\b/g, '#$1');

// withMembers takes the members in, and keeps those that are gone for a while.
export function withMembers(s: State, m: Members, at: number): State {
  const now = new Set(m.members.map(x => x.node));
  let gone = s.gone.filter(g => at - g.at < bounds.goneFor && !now.has(g.member.node));
  if (s.members?.self === m.self) {
    gone = [...gone, ...s.members.members.filter(x => !now.has(x.node)).map(member => ({ at, member }))].slice(-bounds.gone);
  }
  return { ...s, members: m, gone, lost: undefined, seen: at };
}

export const withLoss = (s: State, why: string, at: number): State => ({ ...s, lost: { since: s.lost?.since ?? at, why } });

// withKinds takes the kinds in with the shards of each, where they were asked for, and finds what has moved.
export function withKinds(s: State, kinds: Kind[], shards: Map<string, Shard[]>, at: number): State {
  const hosted = new Map<string, number>();
  let moves: Move[] = [], moved = 0;
  const all = kinds.map(kind => {
    const k: KindState = { ...kind, homes: [], entities: 0, waiting: 0, stuck: 0, homeless: 0, stopping: 0 };
    for (const x of shards.get(kind.name) ?? []) {
      if (x.state === 'retired') continue;
      k.homes.push(x.home ?? '');
      k.entities += x.entities; k.waiting += x.sent + x.passed; k.stuck += x.stuck;
      if (x.state === 'stopping') k.stopping++;
      if (x.home) hosted.set(x.home, (hosted.get(x.home) ?? 0) + 1); else k.homeless++;
    }
    const before = s.kinds.find(b => b.name === k.name)?.homes ?? [];
    const between = new Map<string, Move>();
    if (before.length === k.homes.length) k.homes.forEach((to, shard) => {
      const from = before[shard];
      if (from === to) return;
      moved++;
      const way = from + '>' + to, known = between.get(way);
      if (known) known.shards++; else between.set(way, { at, kind: k.name, shard, shards: 1, from, to });
    });
    moves = [...between.values(), ...moves];
    return k;
  });
  return { ...s, kinds: all, hosted, moved: s.moved + moved, moves: [...moves, ...s.moves].slice(0, bounds.moves) };
}

export const withDecisions = (s: State, list: Decision[]): State => ({ ...s, decisions: list.slice(-bounds.decisions).reverse() });

// The counters that are followed, and the metrics that are summed up for each.
export const counters: Record<string, string[]> = {
  sent: ['quorate_sharding_messages_sent_total'],
  handled: ['quorate_sharding_messages_handled_total'],
  failed: ['quorate_sharding_messages_failed_total', 'quorate_sharding_messages_refused_total'],
  between: ['quorate_node_messages_total'],
};

// totals reads the counters out of metrics in the text format of Prometheus, all labels summed up.
export function totals(metrics: string): Record<string, number> {
  const of = new Map(Object.entries(counters).flatMap(([name, list]) => list.map(m => [m, name] as const)));
  const sums: Record<string, number> = {};
  for (const line of metrics.split('\n')) {
    if (line.startsWith('#')) continue;
    const name = of.get(/^[a-z0-9_]+/i.exec(line)?.[0] ?? '');
    if (!name) continue;
    const value = Number(line.slice(line.lastIndexOf('}') + 1).trim().split(/\s+/).slice(line.includes('}') ? 0 : 1)[0]);
    if (Number.isFinite(value)) sums[name] = (sums[name] ?? 0) + value;
  }
  return sums;
}

export const withTotals = (s: State, sums: Record<string, number>, at: number): State =>
  ({ ...s, samples: [...s.samples, { at, totals: sums }].slice(-bounds.samples) });

// rates returns for each moment how often a second a counter went up since the moment before; null where that is
// not known, as where the node began anew.
export function rates(samples: Sample[], name: string): (number | null)[] {
  return samples.slice(1).map((x, i) => {
    const was = samples[i], seconds = (x.at - was.at) / 1000, up = x.totals[name] - was.totals[name];
    return seconds > 0 && Number.isFinite(up) && up >= 0 ? up / seconds : null;
  });
}

// lagging returns the replicas of a group that lack something or cannot be reached.
export const lagging = (g: Group): { node: string; why: string }[] => (g.replicas ?? [])
  .filter(r => !r.reachable || !r.caughtUp)
  .map(r => ({ node: short(r.node) || r.id, why: r.reachable ? 'catches up' : 'cannot be reached' }));

// stateOf puts the state of a member into one word for its colour, and words for people.
export function stateOf(m: Member): { colour: string; text: string } {
  if ((m.unreachableFor?.length ?? 0) > 0 && m.status !== 'down') return { colour: 'lost', text: m.status === 'up' ? 'unreachable' : `${m.status}, unreachable` };
  if (m.status === 'up') return { colour: 'up', text: 'up' };
  if (m.status === 'down' || m.status === 'removed') return { colour: 'down', text: m.status };
  return { colour: m.status === 'leaving' || m.status === 'exiting' ? 'going' : 'coming', text: m.status };
}

// trouble lists what a person should look at, the worst first.
export function trouble(s: State): string[] {
  const m = s.members, list: string[] = [];
  if (!m) return list;
  if (m.yielded) list.push(`The cluster has yielded to ${m.yielded}: this node ends shortly.`);
  if (m.waiting) list.push(`The node waits for a cluster: ${m.waiting.reason} ${m.waiting.cure}`);
  if (!m.standing && !m.waiting) list.push('The node has no standing: what it hosts is suspended.');
  if (m.recordLost) list.push('The record of the node was lost: after a restart it has no vote.');
  const lost = m.members.filter(x => stateOf(x).colour === 'lost');
  if (lost.length > 0) list.push(`${lost.length === 1 ? '1 member cannot' : `${lost.length} members cannot`} be reached: ${lost.slice(0, 5).map(x => short(x.node)).join(', ')}${lost.length > 5 ? ', …' : ''}`);
  if (!m.converged && lost.length === 0 && m.blockers) list.push(`Not agreed yet: ${brief(m.blockers)}`);
  for (const k of s.kinds) {
    if (k.homeless > 0) list.push(`${k.homeless} of ${k.shards} shards of ${k.name} have no home that this node knows.`);
    if (k.stuck > 0) list.push(`${k.stuck} entities of ${k.name} on this node do not return from a call.`);
  }
  for (const g of s.groups) {
    for (const why of [g.refused, g.disputed, g.apart]) if (why) list.push(`Keys ${g.name}: ${why}`);
    if (!g.quorum) list.push(`Keys ${g.name}: too few replicas can be reached for majorities.`);
  }
  for (const p of s.plugins) if (p.state !== 'running') list.push(`Plugin ${p.name} is ${p.state}${p.last_error ? `: ${p.last_error}` : ''}`);
  return list;
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

import { describe, expect, it } from 'vitest';
import type { Decision, Kind, Member, Members, Shard } from '../src/api';
import { bounds, brief, empty, lagging, rates, short, stateOf, totals, trouble, withDecisions, withKinds, withLoss, withMembers, withTotals } from '../src/state';

const member = (node: string, more: Partial<Member> = {}): Member => ({ node, status: 'up', voter: true, seen: true, ...more });
const members = (list: Member[], more: Partial<Members> = {}): Members => ({ self: 'a:1#1', standing: true, leader: 'a:1#1', converged: true, voters: list.map(x => x.node), members: list, ...more });
const kind: Kind = { name: 'account', shards: 3, hosted: 1, proxy: false };
const shard = (n: number, home: string, more: Partial<Shard> = {}): Shard => ({ shard: n, home, state: 'hosted elsewhere', entities: 0, stuck: 0, sent: 0, passed: 0, ...more });
const homes = (...list: string[]) => new Map([['account', list.map((h, i) => shard(i, h))]]);

describe('members', () => {
  it('that are gone are kept for a while, and no longer', () => {
    let s = withMembers(empty(), members([member('a:1#1'), member('b:1#2')]), 1000);
    s = withMembers(s, members([member('a:1#1')]), 2000);
    expect(s.gone.map(g => g.member.node)).toEqual(['b:1#2']);
    expect(withMembers(s, members([member('a:1#1'), member('b:1#2')]), 3000).gone).toEqual([]);
    expect(withMembers(s, members([member('a:1#1')]), 2000 + bounds.goneFor).gone).toEqual([]);
  });
  it('of another node are compared with nothing', () => {
    let s = withMembers(empty(), members([member('a:1#1'), member('b:1#2')]), 1000);
    s = withMembers(s, members([member('a:1#9')], { self: 'a:1#9' }), 2000);
    expect(s.gone).toEqual([]);
  });
  it('have a state for people', () => {
    expect(stateOf(member('a')).colour).toBe('up');
    expect(stateOf(member('a', { unreachableFor: ['b'] }))).toEqual({ colour: 'lost', text: 'unreachable' });
    expect(stateOf(member('a', { status: 'down', unreachableFor: ['b'] })).colour).toBe('down');
    expect(stateOf(member('a', { status: 'leaving' })).colour).toBe('going');
    expect(stateOf(member('a', { status: 'joining' })).colour).toBe('coming');
  });
});

describe('shards', () => {
  it('that moved together are one move', () => {
    let s = withKinds(empty(), [kind], homes('a', 'a', 'b'), 1000);
    expect(s.moves).toEqual([]);
    s = withKinds(s, [kind], homes('b', 'b', 'a'), 2000);
    expect(s.moves).toEqual([{ at: 2000, kind: 'account', shard: 0, shards: 2, from: 'a', to: 'b' }, { at: 2000, kind: 'account', shard: 2, shards: 1, from: 'b', to: 'a' }]);
    expect([s.moved, s.hosted.get('b')]).toEqual([3, 2]);
  });
  it('are counted, and those without a home are not lost', () => {
    const s = withKinds(empty(), [kind], new Map([['account', [shard(0, 'a', { state: 'stopping', entities: 4, sent: 1, passed: 2 }), shard(1, ''), shard(2, 'a', { state: 'retired' })]]]), 0);
    expect(s.kinds[0]).toMatchObject({ homeless: 1, stopping: 1, entities: 4, waiting: 3 });
    expect(trouble(withMembers(s, members([]), 0)).join()).toContain('1 of 3 shards of account have no home');
  });
  it('of a kind that has another number of them now did not move', () => {
    const s = withKinds(withKinds(empty(), [kind], homes('a', 'a', 'a'), 0), [kind], homes('b', 'b'), 1);
    expect(s.moved).toBe(0);
  });
  it('of 100 nodes are taken in within a frame', () => {
    const list = (by: number) => new Map([['account', Array.from({ length: 10_000 }, (_, i) => shard(i, `n${(i + by) % 100}`))]]);
    let s = withKinds(empty(), [kind], list(0), 0);
    const next = list(1), from = performance.now();
    s = withKinds(s, [kind], next, 1);
    expect(performance.now() - from).toBeLessThan(1000); // Some 5 ms; the bound is for a busy machine.
    expect([s.moved, s.moves.length]).toEqual([10_000, bounds.moves]);
  });
});

describe('rates', () => {
  const metrics = (n: number) => `# HELP quorate_sharding_messages_sent_total x\nquorate_sharding_messages_sent_total{kind="a} 7"} ${n}\nquorate_sharding_messages_sent_total{kind="b"} 1e1\nquorate_node_messages_total 5\nquorate_sharding_messages_sent_total_other 99\nnonsense\n`;
  it('are of all labels together', () => expect(totals(metrics(2))).toEqual({ sent: 12, between: 5 }));
  it('are a second, and unknown where the node began anew', () => {
    let s = empty();
    for (const [at, n] of [[0, 0], [2000, 10], [4000, 0], [6000, 8]]) s = withTotals(s, totals(metrics(n)), at);
    expect(rates(s.samples, 'sent')).toEqual([5, null, 4]);
    expect(rates(s.samples, 'handled')).toEqual([null, null, null]);
  });
  it('and everything else is bounded', () => {
    let s = empty();
    for (let i = 0; i < 1000; i++) {
      s = withTotals(s, {}, i * 1000);
      s = withKinds(s, [kind], homes(`n${i}`), i);
      s = withMembers(s, members([member(`n${i}:1#1`)]), i);
    }
    s = withDecisions(s, Array.from({ length: 1000 }, (_, i) => ({ at: `${i}` }) as Decision));
    expect([s.samples.length, s.moves.length, s.gone.length, s.decisions.length]).toEqual([bounds.samples, bounds.moves, bounds.gone, bounds.decisions]);
    expect(s.decisions[0].at).toBe('999');
  });
});

it('a node that does not answer is said to be silent since the first time', () => {
  let s = withLoss(withLoss(withMembers(empty(), members([]), 5), 'refused', 10), 'refused', 20);
  expect(s.lost).toEqual({ since: 10, why: 'refused' });
  s = withMembers(s, members([]), 30);
  expect([s.lost, s.seen]).toEqual([undefined, 30]);
});

it('trouble is said, the worst first', () => {
  const m = members([member('b:1#2', { unreachableFor: ['a:1#1'] })], { standing: false, recordLost: true, converged: false, blockers: 'b' });
  const list = trouble({ ...withMembers(empty(), m, 0), plugins: [{ name: 'p', policy: 'downing', state: 'broken', since: '', says: '', restarts: 0, calls: 0, failures: 0, last_error: 'it crashed' }] });
  expect(list[0]).toContain('no standing');
  expect(list.join('\n')).toMatch(/record[^]*1 member cannot be reached: b:1[^]*Plugin p is broken: it crashed/);
  expect(trouble(withMembers(empty(), members([member('a:1#1')]), 0))).toEqual([]);
});

it('replicas that lag are named', () => {
  const group = { name: 'all', durable: false, phase: 'stable', quorum: true, holds: true, caughtUp: true, keys: 0, tombstones: 0, bytes: 0, unspread: 0, waiting: 0 };
  expect(lagging(group)).toEqual([]);
  expect(lagging({ ...group, replicas: [{ id: '1', node: 'a:1#1', reachable: true, caughtUp: true }, { id: '2', node: 'b:1#2', reachable: true, caughtUp: false }, { id: '3', reachable: false, caughtUp: true }] }))
    .toEqual([{ node: 'b:1', why: 'catches up' }, { node: '3', why: 'cannot be reached' }]);
});

it('names are short', () => {
  expect([short('a:1#1b'), short(undefined), brief('a:1#1b0f2e3d4c5b6a79 and #12')]).toEqual(['a:1', '', 'a:1#1b0f and #12']);
});

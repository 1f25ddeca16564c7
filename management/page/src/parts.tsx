// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// The parts of the page beside the ring: members, kinds, what happens, search, keys, plugins.

import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { get } from './api';
import type { Decision, Explanation, KeyExplanation, Version } from './api';
import { brief, lagging, short, stateOf } from './state';
import type { Move, State } from './state';

export function Part({ name, note, why, children, wide }: { name: string; note?: string; why?: string; children?: ComponentChildren; wide?: boolean }) {
  return (
    <section class={wide ? 'wide' : ''} aria-label={name}>
      <h2>{name}{note && <small> {note}</small>}</h2>
      {why ? <p class="none">{why}</p> : children}
    </section>
  );
}

const clock = (at: string | number) => new Date(at).toTimeString().slice(0, 8);

// Rows have their roles said, since they are laid out as grids.
export function MemberTable({ s, chosen, choose, now }: { s: State; chosen?: string; choose: (node?: string) => void; now: number }) {
  const m = s.members!, most = Math.max(1, ...s.hosted.values());
  return (
    <div class="scroll"><table class="members" role="table">
      <thead role="rowgroup"><tr role="row"><th role="columnheader">Member</th><th role="columnheader">State</th><th role="columnheader">Shards</th></tr></thead>
      <tbody role="rowgroup">
        {m.members.slice(0, 1000).map(x => {
          const state = stateOf(x), hosted = s.hosted.get(x.node) ?? 0;
          const facts = [x.node === m.leader && 'leader', x.node === m.self && 'asked', !x.voter && 'no vote', !x.seen && 'has not seen the latest', x.zone && `zone ${x.zone}`, x.roles?.join(' '), x.appVersion !== '0.0.0' && x.appVersion].filter(Boolean);
          return (
            <tr key={x.node} role="row" aria-selected={chosen === x.node} onClick={() => choose(chosen === x.node ? undefined : x.node)} data-member={short(x.node)}>
              <td role="cell"><b>{short(x.node)}</b><small>{facts.join(', ')}</small>{x.downedWhy && <small class="bad">{short(x.downedBy)}: {brief(x.downedWhy)}</small>}
                {chosen === x.node && (x.unreachableFor?.length ?? 0) > 0 && <small class="bad">unreachable for {x.unreachableFor!.map(short).join(', ')}</small>}</td>
              <td role="cell"><span class={`tag ${state.colour}`}>{state.text}</span></td>
              <td role="cell" class="bar"><meter min={0} max={most} value={hosted} aria-label="shards" /> <span>{hosted}</span></td>
            </tr>
          );
        })}
        {s.gone.map(g => <tr key={g.member.node} role="row" class="gone" data-member={short(g.member.node)}><td role="cell"><b>{short(g.member.node)}</b><small>{Math.round((now - g.at) / 1000)} s ago</small></td><td role="cell"><span class="tag">gone</span></td><td role="cell" /></tr>)}
      </tbody>
    </table></div>
  );
}

export function Kinds({ s }: { s: State }) {
  if (s.kinds.length === 0) return <p class="none">No kind of entity runs on this node.</p>;
  return (
    <ul class="plain">
      {s.kinds.map(k => (
        <li key={k.name}>
          <b>{k.name}</b> <span>{k.proxy ? `only sends, ${k.shards} shards` : `${k.hosted} of ${k.shards} shards here`}</span>
          <small>{[`${k.entities} entities here`, k.waiting > 0 && `${k.waiting} messages wait`, k.stopping > 0 && `${k.stopping} stopping`, k.homeless > 0 && `${k.homeless} without a home`, k.coordinator ? `coordinator ${short(k.coordinator)}` : k.noCoordinator ? `no coordinator: ${brief(k.noCoordinator)}` : 'coordinator not known'].filter(Boolean).join(', ')}</small>
        </li>
      ))}
    </ul>
  );
}

// The colours of topics: what takes away, what moves, the rest.
const tone = (d: Decision) => (/down|removed|refused|unreachable|lost/.test(d.verdict) || d.topic === 'downing' ? 'bad' : d.component === 'sharding' ? 'move' : '');

type Happening = { at: number; key: string; tone: string; head: string; text: string };

const ofDecision = (d: Decision): Happening => ({ at: Date.parse(d.at), key: d.at + d.topic + d.subject, tone: tone(d), head: `${d.topic} of ${brief(d.subject)}: ${brief(d.verdict)}`, text: brief(d.reason) });
const ofMove = (m: Move): Happening => ({
  at: m.at, key: `${m.at}${m.kind}${m.from}${m.to}`, tone: 'move', text: '',
  head: `${m.shards === 1 ? `shard ${m.shard}` : `${m.shards} shards`} of ${m.kind}: ${short(m.from) || 'nowhere'} → ${short(m.to) || 'nowhere'}`,
});

export function Happenings({ s, chosen }: { s: State; chosen?: string }) {
  const [only, set] = useState('');
  const list = [...(only === 'decisions' ? [] : s.moves.map(ofMove)), ...(only === 'moves' ? [] : s.decisions.map(ofDecision))]
    .filter(x => !chosen || (x.head + x.text).includes(short(chosen)))
    .sort((a, b) => b.at - a.at).slice(0, 150);
  return (
    <>
      <p class="choice" role="group" aria-label="What to show">{['', 'decisions', 'moves'].map(x => <button key={x} type="button" aria-pressed={only === x} onClick={() => set(x)}>{x || 'all'}</button>)}
        {chosen && <small> about {short(chosen)}</small>}</p>
      <ol class="happenings" aria-live="off" tabindex={0}>
        {list.map(x => <li key={x.key} class={x.tone}><time>{clock(x.at)}</time><div><span>{x.head}</span>{x.text && <small>{x.text}</small>}</div></li>)}
        {list.length === 0 && <li class="none">Nothing{chosen ? ' about this member' : ' yet'}.</li>}
      </ol>
    </>
  );
}

export function Search({ s }: { s: State }) {
  const [kind, setKind] = useState(''), [id, setID] = useState(''), [found, setFound] = useState<Explanation>(), [why, setWhy] = useState('');
  const of = kind || s.kinds[0]?.name;
  const look = async (e: Event) => {
    e.preventDefault();
    try {
      setFound(await get<Explanation>(`v1/kinds/${encodeURIComponent(of)}/entities/${encodeURIComponent(id).replace(/\./g, '%2E')}`)); setWhy('');
    } catch (x) { setFound(undefined); setWhy((x as Error).message); }
  };
  if (!of) return <p class="none">No kind of entity runs on this node.</p>;
  return (
    <>
      <form onSubmit={look} role="search">
        <select aria-label="Kind" value={of} onChange={e => setKind(e.currentTarget.value)}>{s.kinds.map(k => <option key={k.name}>{k.name}</option>)}</select>
        <input aria-label="Entity" placeholder="id of an entity" required maxLength={512} value={id} onInput={e => setID(e.currentTarget.value)} autocomplete="off" spellcheck={false} />
        <button type="submit" class="main">Find</button>
      </form>
      {why && <p class="bad" role="alert">{why}</p>}
      {found && <dl class="facts" data-found={found.entity}>
        <dt>home</dt><dd>{short(found.home) || 'none'}</dd>
        <dt>shard</dt><dd>{found.shard}, {found.state}{found.since && `, since ${clock(found.since)}`}</dd>
        {(found.decision || found.reason) && <><dt>because</dt><dd>{[found.decision, found.reason].filter(Boolean).map(x => brief(x!)).join('. ')}</dd></>}
        {(found.pending?.length ?? 0) > 0 && <><dt>waits</dt><dd>{found.pending!.map(brief).join('; ')}</dd></>}
        {(found.history ?? []).slice(-5).reverse().map(h => <><dt>{h.at ? clock(h.at) : 'before'}</dt><dd>{short(h.from) || 'nowhere'} → {short(h.to) || 'nowhere'}{h.reason && `: ${brief(h.reason)}`}</dd></>)}
        <dt>says</dt><dd>{short(found.self)}{found.complete ? ', the coordinator' : `, which is not the coordinator: ${short(found.coordinator) || 'nobody'} knows more`}</dd>
      </dl>}
    </>
  );
}

const bytes = (n: number) => (n < 1024 ? `${n} B` : n < 1 << 20 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / (1 << 20)).toFixed(1)} MiB`);
const sum = (list: Version[] | undefined) => JSON.stringify(list ?? []);

export function Keys({ s }: { s: State }) {
  const [prefix, set] = useState(''), [keys, setKeys] = useState<{ keys: string[]; more: boolean }>(), [key, setKey] = useState<KeyExplanation>(), [why, setWhy] = useState('');
  const attempt = async (f: () => Promise<void>) => { try { await f(); setWhy(''); } catch (x) { setWhy((x as Error).message); } };
  const look = (e: Event) => { e.preventDefault(); void attempt(async () => { setKey(undefined); setKeys(await get(`v1/data/keys?limit=50&prefix=${encodeURIComponent(prefix)}`)); }); };
  return (
    <>
      <ul class="plain">
        {s.groups.map(g => {
          const behind = lagging(g);
          return (
            <li key={g.name}>
              <b>{g.name}</b> <span>{g.keys} keys here, {bytes(g.bytes)}{g.durable && ', durable'}</span>
              <small>{[`${g.replicas?.length ?? 0} replicas, ${g.phase}`, !g.quorum && 'no majority', !g.caughtUp && 'this node catches up', g.unspread > 0 && `${g.unspread} not sent yet`, g.waiting > 0 && `${g.waiting} operations wait`, g.store && `store ${g.store}`].filter(Boolean).join(', ')}</small>
              {behind.length === 0 ? <small class="good">nobody lags</small> : behind.map(r => <small key={r.node} class="bad">{r.node} {r.why}</small>)}
            </li>
          );
        })}
      </ul>
      <form onSubmit={look} role="search">
        <input aria-label="Keys that begin with" placeholder="keys that begin with…" maxLength={512} value={prefix} onInput={e => set(e.currentTarget.value)} autocomplete="off" spellcheck={false} />
        <button type="submit">List</button>
      </form>
      {why && <p class="bad" role="alert">{why}</p>}
      {keys && <ul class="keys">{keys.keys.map(k => <li key={k}><button type="button" class="link" onClick={() => void attempt(async () => setKey(await get(`v1/data/explain?key=${encodeURIComponent(k)}`)))}>{k}</button></li>)}
        {keys.keys.length === 0 && <li class="none">None.</li>}{keys.more && <li class="none">and others</li>}</ul>}
      {key && <dl class="facts"><dt>{key.key}</dt><dd>{key.state}{key.type && `, ${key.type}`}{key.bytes ? `, ${bytes(key.bytes)}` : ''}{key.kept && `; ${key.kept}`}</dd>
        {(key.homes ?? []).map(h => <><dt>{short(h.replica)}</dt><dd class={h.answered && sum(h.versions) === sum(key.versions) ? 'good' : 'bad'}>{!h.answered ? 'does not answer' : sum(h.versions) === sum(key.versions) ? `${h.state}, the same` : `${h.state}, differs from this node`}</dd></>)}</dl>}
    </>
  );
}

export function Plugins({ s }: { s: State }) {
  if (s.plugins.length === 0) return <p class="none">The built-in strategies decide: there are no plugins.</p>;
  return (
    <ul class="plain">
      {s.plugins.map(p => (
        <li key={p.name}>
          <b>{p.name}</b> <span class={`tag ${p.state === 'running' ? 'up' : 'lost'}`}>{p.state}</span> <span>{p.policy}</span>
          <small>{p.says}</small><small>{p.calls} calls, {p.failures} failed, {p.restarts} restarts, since {clock(p.since)}</small>{p.last_error && <small class="bad">{p.last_error}</small>}
        </li>
      ))}
    </ul>
  );
}

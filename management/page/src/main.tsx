// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Chart } from './chart';
import { Happenings, Keys, Kinds, MemberTable, Part, Plugins, Search } from './parts';
import { poll } from './poll';
import { Ring } from './ring';
import { empty, short, trouble } from './state';
import './style.css';

const clock = (at: number) => new Date(at).toTimeString().slice(0, 8);

function Page() {
  const [s, set] = useState(empty), [chosen, choose] = useState<string>();
  useEffect(() => { void poll(empty(), set); }, []);
  useEffect(() => { document.title = s.members ? `${s.lost ? '⚠ ' : ''}${short(s.members.self)} · Quorate` : 'Quorate'; });
  const now = Date.now(), m = s.members;
  if (!m) return <p class="first">{s.lost ? `No answer from the node: ${s.lost.why}. It is asked again and again.` : 'Asking the node…'}</p>;
  const chip = (good: boolean, name: string, value: string) => <li class={good ? 'good' : 'bad'}><small>{name}</small> {value}</li>;
  const wrong = trouble(s);
  return (
    <>
      <header>
        <h1>{short(m.self)}</h1>
        <ul class="chips">
          {s.ready && chip(s.ready.ok, 'ready', s.ready.ok ? 'yes' : 'no')}
          {chip(m.standing, 'standing', m.standing ? 'held' : 'not held')}
          {chip(m.converged, 'agreed', m.converged ? 'yes' : 'no')}
          {chip(!!m.leader, 'leader', short(m.leader) || 'none')}
          <li><small>voters</small> {m.voters.length}</li>
        </ul>
      </header>
      <div role="status" aria-live="polite">
        {s.lost && <p class="alert lost" data-lost>No answer since {clock(s.lost.since)}: {s.lost.why}. What is shown is of {clock(s.seen)}; the node is asked again and again.</p>}
        {wrong.length > 0 && <ul class="alert">{wrong.slice(0, 6).map(x => <li key={x}>{x}</li>)}{wrong.length > 6 && <li>and {wrong.length - 6} more</li>}</ul>}
      </div>
      <main class={s.lost ? 'old' : ''}>
        <div>
        <section class="ringpart" aria-label="Ring"><Ring s={s} chosen={chosen} choose={choose} now={now} /></section>
        <Part name="Find an entity"><Search s={s} /></Part>
        <Part name="Kinds" why={s.missing.kinds}><Kinds s={s} /></Part>
        </div>
        <div>
        <Part name="Members" note={`${m.members.length}`}><MemberTable s={s} chosen={chosen} choose={choose} now={now} /></Part>
        <Part name="Rates" note="of this node, a second" why={s.missing.rates && 'This node has no metrics: telemetry.metrics is not prometheus.'}><Chart samples={s.samples} /></Part>
        <Part name="Replicated keys" why={s.missing.data && 'This node replicates no data.'}><Keys s={s} /></Part>
        </div>
        <div>
        <Part name="What happens" note={`decisions of this node, ${s.moved} moves seen`} why={s.missing.decisions}><Happenings s={s} chosen={chosen} /></Part>
        <Part name="Plugins" why={s.missing.plugins}><Plugins s={s} /></Part>
        </div>
      </main>
      <footer><p>As this node sees it, looked at {clock(s.seen)}. It can only be looked at here. <a href="ui/licences.txt">Licences</a></p></footer>
    </>
  );
}

render(<Page />, document.getElementById('app')!);

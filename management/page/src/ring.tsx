// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// The ring of members: the oldest at the top, then clockwise. The size of a node is by the shards that it hosts, a red
// line goes from who cannot reach a member to that member, and an arrow shows where shards went in the last seconds, out of
// the middle if the member that had them is gone.

import { short, stateOf } from './state';
import type { State } from './state';

export const drawnMost = 120;
const size = 400, middle = size / 2;

export function Ring({ s, chosen, choose, now }: { s: State; chosen?: string; choose: (node?: string) => void; now: number }) {
  const m = s.members!, all = m.members.slice(0, drawnMost), n = all.length;
  const round = n > 24 ? 178 : 146, most = Math.max(1, ...s.hosted.values());
  const dot = Math.min(22, Math.max(4, 430 / Math.max(n, 1)));
  const place = new Map(all.map((x, i) => {
    const turn = (i / Math.max(n, 1)) * 2 * Math.PI - Math.PI / 2;
    return [x.node, { x: middle + round * Math.cos(turn), y: middle + round * Math.sin(turn), turn }];
  }));
  const cuts = all.flatMap(x => (x.unreachableFor ?? []).slice(0, 12).map(by => [by, x.node] as const)).slice(0, 400);
  const moves = s.moves.filter(x => now - x.at < 8000 && place.has(x.to)).slice(0, 40);
  const radius = (node: string) => dot * (0.62 + 0.38 * Math.sqrt((s.hosted.get(node) ?? 0) / most));
  return (
    <svg class={n > 24 ? 'ring' : 'ring few'} viewBox={`0 0 ${size} ${size}`} role="group" aria-label={`Ring of ${m.members.length} members`}>
      <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="12" markerHeight="12" orient="auto"><path d="M0 0 8 4 0 8z" class="tip" /></marker></defs>
      <circle cx={middle} cy={middle} r={round} class="circle" />
      {cuts.map(([by, to]) => { const a = place.get(by), b = place.get(to); return a && b && <line key={by + to} x1={a.x} y1={a.y} x2={b.x} y2={b.y} class="cut" />; })}
      {moves.map(x => {
        const b = place.get(x.to)!, a = place.get(x.from) ?? { x: middle + (b.x - middle) * 0.42, y: middle + (b.y - middle) * 0.42 };
        return <path key={`${x.at}${x.kind}${x.from}${x.to}`} class="moving" marker-end="url(#tip)" stroke-width={1.5 + Math.min(Math.log2(x.shards), 8) / 4}
          d={`M${a.x} ${a.y} Q${(a.x + b.x + middle) / 3} ${(a.y + b.y + middle) / 3} ${b.x + (middle - b.x) * dot / round} ${b.y + (middle - b.y) * dot / round}`}><title>{`${x.shards} of ${x.kind}`}</title></path>;
      })}
      {all.map(x => {
        const p = place.get(x.node)!, state = stateOf(x), hosted = s.hosted.get(x.node) ?? 0, r = radius(x.node);
        const name = short(x.node), out = round + dot + 9, across = Math.cos(p.turn);
        return (
          <g key={x.node} class={`node ${state.colour}${chosen === x.node ? ' chosen' : ''}`} data-node={name} data-state={state.colour} tabindex={n > 40 ? -1 : 0} role="button"
            aria-label={`${name}: ${state.text}, ${hosted} shards${x.node === m.leader ? ', leader' : ''}${x.node === m.self ? ', asked' : ''}`} aria-pressed={chosen === x.node}
            onClick={() => choose(chosen === x.node ? undefined : x.node)} onKeyDown={e => { if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); choose(chosen === x.node ? undefined : x.node); } }}>
            {x.node === m.self && <circle cx={p.x} cy={p.y} r={r + 4} class="self" />}
            <circle cx={p.x} cy={p.y} r={r} class="dot" />
            {dot > 10 && <text x={p.x} y={p.y} class="count">{state.colour === 'lost' ? '!' : hosted || ''}</text>}
            {x.node === m.leader && <path class="leader" transform={`translate(${p.x} ${p.y - r - (dot > 10 ? 7 : 4)}) scale(${dot > 10 ? 1 : 0.7})`} d="M-7 3-7-5-3-1 0-6 3-1 7-5 7 3z" />}
            {n <= 24 && <text x={middle + out * across} y={middle + out * Math.sin(p.turn)} class="name" text-anchor={Math.abs(across) < 0.3 ? 'middle' : across > 0 ? 'end' : 'start'}
              dx={Math.abs(across) < 0.3 ? 0 : across > 0 ? Math.min(middle - out * across, 40) : -Math.min(middle + out * across, 40)} dy={Math.sin(p.turn) < -0.3 ? -(x.node === m.leader ? 12 : 2) : Math.sin(p.turn) > 0.3 ? 6 : dot + 8}>{label(name)}</text>}
            <title>{`${name}: ${state.text}`}</title>
          </g>
        );
      })}
      <circle cx={middle} cy={middle} r={n > 24 ? 70 : 54} class="hub" />
      <text x={middle} y={middle - 14} class="many">{m.members.length}</text>
      <text x={middle} y={middle + 12} class="what">{m.members.length === 1 ? 'member' : 'members'}</text>
      <text x={middle} y={middle + 32} class={m.converged ? 'what good' : 'what warn'}>{m.converged ? 'agreed' : 'not agreed'}</text>
      {m.members.length > drawnMost && <text x={middle} y={middle + 52} class="what">{m.members.length - drawnMost} are not drawn</text>}
    </svg>
  );
}

// label is what of a name fits beside its node: the first part of a host name, or the end of an address.
function label(name: string): string {
  const host = name.replace(/:\d+$/, '');
  if (/^[\d.]+$/.test(host)) return host.length > 15 ? name.slice(-15) : host === '127.0.0.1' ? name.slice(host.length) : host;
  const first = host.split('.')[0];
  return first.length > 15 ? first.slice(0, 14) + '…' : first;
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// The rates of the last minutes.

import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { rates } from './state';
import type { Sample } from './state';

const lines: [string, string, string][] = [['sent', 'sent to entities', '--blue'], ['handled', 'handled here', '--good'], ['failed', 'failed or refused', '--bad'], ['between', 'between nodes', '--weak']];

const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function Chart({ samples }: { samples: Sample[] }) {
  const box = useRef<HTMLDivElement>(null), plot = useRef<uPlot | null>(null), last = useRef<uPlot.AlignedData>([[]]);
  last.current = [samples.slice(1).map(x => x.at / 1000), ...lines.map(([name]) => rates(samples, name))];
  useEffect(() => {
    const element = box.current!;
    const make = () => {
      plot.current?.destroy();
      const axis = { stroke: colour('--weak'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui' };
      plot.current = new uPlot({
        width: Math.max(element.clientWidth, 100), height: 190, cursor: { y: false }, legend: { show: false },
        scales: { y: { range: (_, __, most) => [0, Math.max(most ?? 0, 1) * 1.1] } },
        axes: [{ ...axis, size: 28, space: 70, values: (_, list) => list.map(t => new Date(t * 1000).toTimeString().slice(0, 8)) }, { ...axis, size: 46 }],
        series: [{}, ...lines.map(([, label, c]) => ({ label, stroke: colour(c), width: 2, points: { show: false } }))],
      }, last.current, element);
    };
    make();
    const sized = new ResizeObserver(() => plot.current?.setSize({ width: Math.max(element.clientWidth, 100), height: 190 }));
    sized.observe(element);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', make);
    return () => { sized.disconnect(); dark.removeEventListener('change', make); plot.current?.destroy(); };
  }, []);
  useEffect(() => { plot.current?.setData(last.current); }, [samples]);
  const latest = (name: string) => { const v = rates(samples.slice(-2), name)[0]; return v == null ? '–' : v.toFixed(v > 0 && v < 10 ? 1 : 0); };
  return (
    <>
      <div ref={box} class="chart" role="img" aria-label="Rates of the last minutes" />
      <ul class="lines">{lines.map(([name, label, c]) => <li key={name}><svg viewBox="0 0 16 8" aria-hidden="true"><path d="M0 4h16" stroke={`var(${c})`} stroke-width="3" /></svg>{label} <b>{latest(name)}</b></li>)}</ul>
    </>
  );
}

// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// What the routes of the node answer, as far as the page shows it, and how they are asked. Addresses are
// relative to the page, so that it also works behind a proxy that adds a prefix.

export interface Member {
  node: string; status: string; age?: number; zone?: string; roles?: string[]; appVersion?: string;
  voter: boolean; seen: boolean; unreachableFor?: string[]; downedBy?: string; downedWhy?: string;
}
export interface Waiting { reason: string; cure: string; voters: { node: string; answer: string }[] }
export interface Members {
  self: string; standing: boolean; leader?: string; converged: boolean; blockers?: string; cluster?: string;
  yielded?: string; waiting?: Waiting; recordLost?: boolean; voters: string[]; members: Member[];
}
export interface Kind { name: string; shards: number; hosted: number; proxy: boolean; coordinator?: string; noCoordinator?: string }
export interface Shard { shard: number; home?: string; state: string; entities: number; stuck: number; sent: number; passed: number }
export interface Decision { at: string; component: string; topic: string; subject: string; verdict: string; reason: string }
export interface Plugin { name: string; policy: string; state: string; since: string; says: string; restarts: number; calls: number; failures: number; last_error?: string }
export interface Replica { id: string; node?: string; reachable: boolean; caughtUp: boolean; heard?: string }
export interface Group {
  name: string; durable: boolean; phase: string; quorum: boolean; replicas?: Replica[]; held?: unknown[]; holds: boolean; caughtUp: boolean;
  refused?: string; disputed?: string; apart?: string; keys: number; tombstones: number; bytes: number; unspread: number; waiting: number; store?: string;
}
export interface Version { origin: number; count: number }
export interface KeyHome { replica: string; answered: boolean; state?: string; versions?: Version[] }
export interface KeyExplanation { key: string; self: string; here: boolean; state: string; type?: string; bytes?: number; versions?: Version[]; homes?: KeyHome[]; kept?: string }
export interface Explanation {
  kind: string; entity?: string; shard: number; self: string; complete: boolean; home?: string; state?: string; since?: string;
  coordinator?: string; decision?: string; reason?: string; pending?: string[]; history?: { at?: string; from?: string; to?: string; reason?: string }[];
}

// Limits of an answer: how long it may take, in milliseconds.
const patience = 6000;

export class Refused extends Error {
  constructor(readonly status: number, text: string) { super(text); }
}

async function ask(path: string): Promise<Response> {
  const response = await fetch(path, { signal: AbortSignal.timeout(patience), cache: 'no-store', credentials: 'same-origin' });
  if (response.ok) return response;
  let text = `status ${response.status}`;
  try {
    const failure = await response.json();
    if (failure?.error) text = [failure.error, ...(failure.reasons ?? [])].join(': ');
  } catch { /* The status says enough. */ }
  throw new Refused(response.status, text);
}

export const get = async <T>(path: string): Promise<T> => (await ask(path)).json();
export const text = async (path: string): Promise<string> => (await ask(path)).text();

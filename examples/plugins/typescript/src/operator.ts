// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// The strategy: the operator's endpoint names the node that forms a cluster.

import { type Call, line, Malformed, Settings, Undecided } from "./quorate-plugin";

const answerBytesMax = 64 << 10; // Of the endpoint.

// Observed is what the endpoint is asked about, as JSON.
interface Observed {
  service: string;
  self: string;
  required: number;
  contactPoints: { address: string; answered: boolean }[];
}

// schema is what a node checks the settings by before the plugin gets them, and shows of them.
export const schema = {
  type: "object", additionalProperties: false, required: ["url"],
  properties: {
    url: { type: "string", pattern: "^https?://[^/]", description: "The endpoint that is asked which node forms a cluster." },
    "timeout-ms": { type: "integer", minimum: 1, maximum: 5000, default: 2000, "x-unit": "ms", description: "How long an answer may take." },
  },
};

// operator joins the cluster that goes on. Where there is none, as many contact points as are
// required answer and nothing has changed for the margin, it asks the endpoint by POST which node
// forms one: {"form": "10.0.0.1:7946", "reason": "..."}. Without "form" nobody does yet. All nodes
// ask the same endpoint, and it names one: so at most one forms a cluster. Without an answer no
// cluster is formed. The signal of limit aborts after so many milliseconds.
export function operator(settings: Settings, limit = (milliseconds: number) => AbortSignal.timeout(milliseconds)): Record<string, Call> {
  const url = settings.take("url", "");
  const timeout = settings.take("timeout-ms", 2000);
  if (!/^https?:\/\/[^/]/.test(url)) settings.wrong("url", `${JSON.stringify(url)} is not the URL of an endpoint, http or https`);
  if (!(timeout >= 1 && timeout <= 5000)) settings.wrong("timeout-ms", `${timeout} is not from 1 to 5000`);

  const Decide: Call = async (r, signal) => {
    if (r.contact_point.length !== r.answered_nanos.length) throw new Malformed("contact_point: columns of different lengths");
    if (r.seed_node.length > 0) {
      return {
        action: "JOIN_ACTION_JOIN", seed_node: r.seed_node.map((_: string, place: number) => place),
        reason: `operator: ${r.seed_node[0]} is in a cluster that goes on`,
      };
    }
    const points = r.contact_point.map((address: string, i: number) => ({ address, answered: r.answered_nanos[i] >= 0 }));
    const answering = points.filter((p: { answered: boolean }) => p.answered).length;
    if (answering < r.required_contact_points) return probe(`${answering} contact points answer, ${r.required_contact_points} are required`);
    if (r.stable_nanos < r.stable_margin_nanos) return probe("the contact points have not been unchanged for long enough");
    const named = await ask(url, { service: r.service, self: r.self, required: r.required_contact_points, contactPoints: points },
      AbortSignal.any([signal, limit(timeout)]));
    const why = named.reason ? `: ${named.reason}` : "";
    if (named.form === "") return probe(`${url} names no node yet${why}`);
    if (named.form !== r.self) return probe(`${url} names ${named.form}${why}`);
    return { action: "JOIN_ACTION_FORM", reason: line(`operator: ${url} names this node${why}`) };
  };
  return { Decide };
}

function probe(reason: string): object {
  return { action: "JOIN_ACTION_NONE", reason: line(`operator: ${reason}`) };
}

// ask asks the endpoint, until the signal aborts.
async function ask(url: string, observed: Observed, signal: AbortSignal): Promise<{ form: string; reason: string }> {
  let text: string;
  try {
    const response = await fetch(url, {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(observed), redirect: "error", signal,
    });
    if (!response.ok) throw new Error(`status ${response.status}`);
    text = await read(response);
  } catch (err) {
    const cause = err instanceof Error && err.cause instanceof Error ? `: ${err.cause.message}` : ""; // Of "fetch failed".
    throw new Undecided(`${url}: ${err instanceof Error ? err.message : String(err)}${cause}`);
  }
  try {
    const { form = "", reason = "" } = JSON.parse(text) as { form?: unknown; reason?: unknown };
    if (typeof form === "string" && typeof reason === "string") return { form, reason: reason.slice(0, 200) };
  } catch {
    // It is no JSON object; the error is the same.
  }
  throw new Undecided(`${url}: the answer is no object with the texts form and reason`);
}

// read returns the body of an answer that is not too long.
async function read(response: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of response.body ?? []) {
    size += piece.length;
    if (size > answerBytesMax) throw new Error(`the answer has more than ${answerBytesMax} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

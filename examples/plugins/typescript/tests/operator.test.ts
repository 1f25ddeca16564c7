// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// What the strategy decides, asked as a node asks, with an endpoint on this machine.

import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { operator } from "../src/operator";
import { line, Malformed, Settings, Undecided } from "../src/quorate-plugin";

type Answer = (response: ServerResponse, asked: any) => void;

// unlimited lets the endpoint take as long as a busy machine needs.
const unlimited = () => new AbortController().signal;

// decide asks about two contact points that answer, with an endpoint that answers so.
async function decide(answer: Answer, changes: object = {}, settings: object = {}, limit?: (ms: number) => AbortSignal): Promise<any> {
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece) => pieces.push(piece)).on("end", () => answer(response, JSON.parse(Buffer.concat(pieces).toString())));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/form`;
    const given = new Settings(JSON.stringify({ url, ...settings }));
    const { Decide } = operator(given, limit ?? unlimited);
    assert.deepEqual(given.faults, []);
    return await Decide!({
      service: "bank", self: "10.0.0.1:7946", required_contact_points: 2, stable_margin_nanos: 5, stable_nanos: 5,
      contact_point: ["10.0.0.1:7946", "10.0.0.2:7946"], answered_nanos: [0, 0], seed_node_count: [0, 0], seed_node: [],
      ...changes,
    }, new AbortController().signal);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const names = (form: string): Answer => (response) => response.end(JSON.stringify({ form, reason: "by hand" }));

// neverAsked is an endpoint that makes the test fail if it is asked.
const neverAsked: Answer = () => assert.fail("the endpoint was asked");

test("a cluster that goes on is joined without asking", async () => {
  const d = await decide(neverAsked, { seed_node: ["10.0.0.7:7946", "10.0.0.8:7946"], seed_node_count: [0, 2] });
  assert.equal(d.action, "JOIN_ACTION_JOIN");
  assert.deepEqual(d.seed_node, [0, 1]);
});

test("the node that the endpoint names forms a cluster, and no other", async () => {
  const own = await decide(names("10.0.0.1:7946"));
  assert.equal(own.action, "JOIN_ACTION_FORM");
  assert.match(own.reason, /names this node: by hand$/);
  assert.equal((await decide(names("10.0.0.2:7946"))).action, "JOIN_ACTION_NONE");
  assert.equal((await decide(names(""))).action, "JOIN_ACTION_NONE");
});

test("the endpoint is told what was observed", async () => {
  await decide((response, asked) => {
    assert.deepEqual(asked, {
      service: "bank", self: "10.0.0.1:7946", required: 1,
      contactPoints: [{ address: "10.0.0.1:7946", answered: true }, { address: "10.0.0.2:7946", answered: false }],
    });
    response.end("{}");
  }, { answered_nanos: [0, -1], required_contact_points: 1 });
});

test("nobody is asked before enough answer for long enough", async () => {
  for (const changes of [{ answered_nanos: [0, -1] }, { stable_nanos: 4 }, { required_contact_points: 3 }]) {
    assert.equal((await decide(neverAsked, changes)).action, "JOIN_ACTION_NONE");
  }
});

test("without an answer nothing is decided", async () => {
  for (const answer of [
    (r: ServerResponse) => r.writeHead(500).end(),
    (r: ServerResponse) => r.end("form"),
    (r: ServerResponse) => r.end("null"),
    (r: ServerResponse) => r.end('{"form": 1}'),
    (r: ServerResponse) => r.end("x".repeat(100_000)),
    (r: ServerResponse) => r.destroy(),
    (r: ServerResponse) => r.writeHead(302, { location: "/" }).end(),
  ]) {
    await assert.rejects(decide(answer), Undecided);
  }
  await assert.rejects(decide(() => {}, {}, { "timeout-ms": 20 }, (ms) => AbortSignal.timeout(ms)), Undecided);
});

test("a request with short columns is refused", async () => {
  await assert.rejects(decide(neverAsked, { answered_nanos: [] }), Malformed);
});

test("wrong settings are named", () => {
  for (const [text, keys] of Object.entries({
    "": ["url"], '{"url": 1}': ["url", "url"], '{"url": "http://a", "timeout-ms": 0, "ulr": ""}': ["timeout-ms", "ulr"],
    "[]": ["", "url"], "{": ["", "url"],
  })) {
    const settings = new Settings(text);
    operator(settings);
    settings.close();
    assert.deepEqual(settings.faults.map((f) => f.key), keys, text);
  }
});

test("a text is cut between characters", () => {
  assert.equal(line("a\nb"), "a b");
  assert.equal(line("ééé", 4), "éé");
  assert.equal(line("ééé", 5), "éé");
});

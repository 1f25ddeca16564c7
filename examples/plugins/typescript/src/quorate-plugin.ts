// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// What every plugin in TypeScript does, whatever it decides: the handshake with the node that has
// started the process, as docs/plugins.md describes it, the settings, errors and the log.
// serve() answers calls until the node says stop, the process is terminated or the node has died.

import "reflect-metadata";
import { createPrivateKey, webcrypto } from "node:crypto";
import { join } from "node:path";
import * as grpc from "@grpc/grpc-js";
import * as loader from "@grpc/proto-loader";
import * as x509 from "@peculiar/x509";
import * as protobuf from "protobufjs";

const cookie = { key: "QUORATE_PLUGIN", value: "5d0f5a5b3c5e4d4c9f3a7c1be2a6b8e1" };
const contract = 1; // The version of the contract that this file speaks.

const requestBytesMax = 16 << 20;
const answerBytesMax = 4 << 20;
const textBytesMax = 1024;
const callsMax = 16;

const notServed = 1; // The exit code of a plugin that could not listen.
const byHand = 2; // The exit code of a plugin that no node has started.
const grace = 1000; // Milliseconds that running calls may take when the process is to end.
const parentInterval = 200; // Milliseconds between looks at who the parent is.

// Undecided: the strategy has no answer now. The text says why; the process is kept.
export class Undecided extends Error {}

// Malformed: the request breaks the contract.
export class Malformed extends Error {}

// A Fault is one fault of the settings.
export interface Fault {
  key: string;
  reason: string;
}

// Settings are those under plugins.<name>.settings. What is not taken is refused.
export class Settings {
  readonly faults: Fault[] = [];
  private rest = new Map<string, unknown>();

  constructor(text: string) {
    try {
      const value: unknown = JSON.parse(text || "{}");
      if (typeof value !== "object" || value === null || Array.isArray(value)) {
        this.wrong("", "no JSON object");
      } else {
        this.rest = new Map(Object.entries(value));
      }
    } catch (err) {
      this.wrong("", `no JSON: ${String(err)}`);
    }
  }

  // take returns the value of a key, or the other one if it is missing or of another type.
  take<T extends string | number | boolean>(key: string, otherwise: T): T {
    const value = this.rest.get(key);
    if (!this.rest.delete(key)) return otherwise;
    if (typeof value === typeof otherwise) return value as T;
    this.wrong(key, `${JSON.stringify(value)} is no ${typeof otherwise}`);
    return otherwise;
  }

  // wrong notes a fault. All faults are reported together.
  wrong(key: string, reason: string): void {
    this.faults.push({ key, reason });
  }

  // close notes the keys that nobody has taken.
  close(): void {
    for (const key of [...this.rest.keys()].sort()) this.wrong(key, "there is no such setting");
  }
}

// log writes a record into the log of the node.
export function log(level: "debug" | "info" | "warn" | "error", text: string, attributes: object = {}): void {
  process.stderr.write(JSON.stringify({ ...attributes, "@level": level, "@message": text }) + "\n");
}

// line returns text as one line of at most limit bytes.
export function line(text: string, limit = textBytesMax): string {
  const bytes = Buffer.from(text.replace(/\p{Cc}/gu, " "));
  let end = Math.min(limit, bytes.length);
  while (end > 0 && end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end--; // Not within a character.
  return bytes.subarray(0, end).toString();
}

// A Call answers one call of the service. The signal says that the node has lost interest.
export type Call = (request: any, signal: AbortSignal) => Promise<object>;

// A Plugin is what serve() serves.
export interface Plugin {
  name: string;
  version: string;
  policy: string; // A value of the enum Policy of the contract.
  service: string; // Its service, such as quorate.plugin.v1.JoinDecider.
  files: string[]; // The texts of the files of the contract that it needs.
  class: { pure?: boolean; majority_only?: boolean };
  schema?: object; // A JSON Schema of the settings, by which a node checks them before.
  configure(settings: Settings): Record<string, Call>; // By the names of the calls.
}

// definitions reads the files of the contract.
function definitions(files: string[]): loader.PackageDefinition {
  const root = new protobuf.Root();
  for (const text of files) protobuf.parse(text, root, { keepCase: true });
  root.resolveAll();
  return loader.fromJSON(root.toJSON(), { keepCase: true, longs: Number, enums: String, defaults: true });
}

// raw is a service whose messages are so small that their bytes are written here.
function raw(path: string): grpc.ServiceDefinition {
  const same = (bytes: Buffer) => bytes;
  return {
    call: {
      path, requestStream: false, responseStream: false,
      requestSerialize: same, requestDeserialize: same, responseSerialize: same, responseDeserialize: same,
    },
  };
}

// statusOf returns the status for what a strategy has thrown.
function statusOf(err: unknown): Partial<grpc.StatusObject> {
  const text = line(err instanceof Error ? err.message : String(err));
  if (err instanceof Undecided) return { code: grpc.status.UNKNOWN, details: text };
  if (err instanceof Malformed) return { code: grpc.status.INVALID_ARGUMENT, details: text };
  log("error", "the strategy has thrown an error", { error: text });
  return { code: grpc.status.INTERNAL, details: text };
}

// handlersOf returns the handlers of the service Plugin and of the policy's service.
function handlersOf(plugin: Plugin, service: grpc.ServiceDefinition) {
  let calls: Record<string, Call> | undefined;
  let inHand = 0;
  const configure: grpc.handleUnaryCall<any, object> = (call, answer) => {
    if (calls) return answer({ code: grpc.status.FAILED_PRECONDITION, details: "the plugin is configured already" });
    const settings = new Settings(Buffer.from(call.request.settings).toString());
    try {
      const made = plugin.configure(settings);
      settings.close();
      if (settings.faults.length === 0) calls = made;
    } catch (err) {
      return answer(statusOf(err));
    }
    const errors = settings.faults.slice(0, 100).map((f) => ({ key: line(f.key, 256), reason: line(f.reason) }));
    if (errors.length > 0) return answer(null, { errors });
    answer(null, { name: plugin.name, version: plugin.version, policy: plugin.policy, class: plugin.class });
  };
  const describe: grpc.handleUnaryCall<any, object> = (_, answer) => {
    const schema = Buffer.from(plugin.schema ? JSON.stringify(plugin.schema) : "");
    const known = calls ? { class: plugin.class } : {}; // It is said once the plugin is configured.
    answer(null, { name: plugin.name, version: plugin.version, policy: plugin.policy, ...known, settings_schema: schema });
  };
  const own: grpc.UntypedServiceImplementation = {};
  for (const name of Object.keys(service)) {
    const ask: grpc.handleUnaryCall<any, object> = async (call, answer) => {
      const run = calls?.[name];
      if (!run) return answer({ code: grpc.status.FAILED_PRECONDITION, details: "the plugin is not configured" });
      if (inHand >= callsMax) return answer({ code: grpc.status.RESOURCE_EXHAUSTED, details: `${callsMax} calls are in hand` });
      const lost = new AbortController();
      call.on("cancelled", () => lost.abort());
      inHand++;
      try {
        answer(null, await run(call.request, lost.signal));
      } catch (err) {
        answer(statusOf(err));
      } finally {
        inHand--;
      }
    };
    own[name] = ask as grpc.UntypedHandleCall;
  }
  return { plugin: { Describe: describe as grpc.UntypedHandleCall, Configure: configure as grpc.UntypedHandleCall }, own };
}

// identity makes a key and a certificate for it, and returns both.
async function identity(): Promise<{ key: Buffer; cert: x509.X509Certificate }> {
  x509.cryptoProvider.set(webcrypto as Crypto);
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const now = Date.now();
  const cert = await x509.X509CertificateGenerator.createSelfSigned({
    name: "CN=localhost", keys: keys as CryptoKeyPair, signingAlgorithm: algorithm,
    notBefore: new Date(now - 60_000), notAfter: new Date(now + 100 * 365 * 86_400_000),
    extensions: [
      new x509.SubjectAlternativeNameExtension([{ type: "dns", value: "localhost" }]),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
    ],
  });
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey));
  const key = createPrivateKey({ key: pkcs8, format: "der", type: "pkcs8" });
  return { key: Buffer.from(key.export({ format: "pem", type: "pkcs8" })), cert };
}

// versionInCommon returns the highest version that both speak, or the own one, which the node
// refuses.
function versionInCommon(offered: string): number {
  return Math.max(...offered.split(",").map(Number).filter((v) => v === contract), contract);
}

// serve serves the plugin and ends the process: the whole of a plugin's main program.
export async function serve(plugin: Plugin): Promise<void> {
  const env = process.env;
  if (env[cookie.key] !== cookie.value) {
    console.error(`${plugin.name} ${plugin.version} is a plugin for Quorate: it is started by the nodes of a cluster, not by hand.`);
    process.exit(byHand);
  }
  process.on("SIGINT", () => {}); // Whoever interrupts the node means the node.

  const server = new grpc.Server({
    "grpc.max_receive_message_length": requestBytesMax, "grpc.max_send_message_length": answerBytesMax,
  });
  const stop = () => {
    setTimeout(() => process.exit(0), grace);
    server.tryShutdown(() => process.exit(0));
  };
  const all = definitions(plugin.files);
  const service = all[plugin.service] as grpc.ServiceDefinition;
  const handlers = handlersOf(plugin, service);
  server.addService(all["quorate.plugin.v1.Plugin"] as grpc.ServiceDefinition, handlers.plugin);
  server.addService(service, handlers.own);
  const bytes = (answer: () => Buffer): grpc.UntypedServiceImplementation => ({
    call: ((_: unknown, callback: grpc.sendUnaryData<Buffer>) => callback(null, answer())) as grpc.UntypedHandleCall,
  });
  server.addService(raw("/grpc.health.v1.Health/Check"), bytes(() => Buffer.from([8, 1])));
  server.addService(raw("/plugin.GRPCController/Shutdown"), bytes(() => {
    setImmediate(stop); // The answer goes first.
    return Buffer.alloc(0);
  }));

  const { key, cert } = await identity();
  const credentials = grpc.ServerCredentials.createSsl(
    Buffer.from(env.PLUGIN_CLIENT_CERT ?? ""), [{ private_key: key, cert_chain: Buffer.from(cert.toString("pem")) }], true);
  const socket = join(env.PLUGIN_UNIX_SOCKET_DIR ?? "", "plugin.sock");
  server.bindAsync("unix:" + socket, credentials, (err) => {
    if (err) {
      log("error", "the plugin cannot listen", { error: err.message });
      process.exit(notServed);
    }
    process.on("SIGTERM", stop);
    const host = Number(env.QUORATE_PLUGIN_HOST_PID) || process.ppid;
    setInterval(() => process.ppid === host || stop(), parentInterval).unref();
    const der = Buffer.from(cert.rawData).toString("base64").replace(/=+$/, "");
    console.log(`1|${versionInCommon(env.PLUGIN_PROTOCOL_VERSIONS ?? "")}|unix|${socket}|grpc|${der}`);
  });
}

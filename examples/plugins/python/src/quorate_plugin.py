# Copyright The Quorate Authors
# SPDX-License-Identifier: Apache-2.0

"""What every plugin in Python does, whatever it decides.

serve() shakes hands with the node that has started the process, as docs/plugins.md
describes, and then answers calls until the node says stop, the process is terminated
or the node has died. The strategy is what configure() makes of the settings: an
object with a method for each call of its service, in lower case, which takes the
request message and returns the answer message.
"""

import base64
import datetime
import json
import os
import signal
import socket
import sys
import threading
from concurrent import futures

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from google.protobuf import message_factory

from quorate.plugin.v1 import plugin_pb2

COOKIE = ("QUORATE_PLUGIN", "5d0f5a5b3c5e4d4c9f3a7c1be2a6b8e1")
CONTRACT = 1  # The version of the contract that this file speaks.

REQUEST_BYTES_MAX = 16 << 20
ANSWER_BYTES_MAX = 4 << 20
TEXT_BYTES_MAX = 1024
CALLS_MAX = 16

NAMES = {bool: "truth value", int: "whole number", float: "number", str: "text", list: "list", dict: "object"}

NOT_SERVED = 1  # The exit code of a plugin that could not listen.
BY_HAND = 2  # The exit code of a plugin that no node has started.
GRACE = 1.0  # Seconds that running calls may take when the process is to end.
PARENT_INTERVAL = 0.2  # Seconds between looks at who the parent is.


class Undecided(Exception):
    """The strategy has no answer now. The text says why; the process is kept."""


class Malformed(Exception):
    """The request breaks the contract."""


class OutOfStep(Exception):
    """Something that came before the request is missing here."""


class Settings:
    """The settings under plugins.<name>.settings. What is not taken is refused."""

    def __init__(self, text):
        self.faults = []
        self._rest = {}
        try:
            self._rest = json.loads(text or b"{}")
        except ValueError as err:
            self.wrong("", f"no JSON: {err}")
        if not isinstance(self._rest, dict):
            self.wrong("", "no JSON object")
            self._rest = {}

    def take(self, key, kind, default):
        """Return the value of a key, the default if it is missing or not of the kind.

        The kind is bool, int, float, str, list or dict.
        """
        if key not in self._rest:
            return default
        value = self._rest.pop(key)
        # In Python True is an int; in a file of settings it is a mistake.
        fits = isinstance(value, (int, float) if kind is float else kind)
        if fits and (kind is bool or not isinstance(value, bool)):
            return kind(value)
        self.wrong(key, f"{value!r} is no {NAMES[kind]}")
        return default

    def wrong(self, key, reason):
        """Note a fault. All faults are reported together."""
        self.faults.append((key, reason))

    def close(self):
        """Note the keys that nobody has taken."""
        for key in sorted(self._rest):
            self.wrong(key, "there is no such setting")


def log(level, text, **attributes):
    """Write a record into the log of the node: trace, debug, info, warn or error."""
    record = {"@level": level, "@message": text, **attributes}
    print(json.dumps(record, default=str), file=sys.stderr, flush=True)


def line(text, limit=TEXT_BYTES_MAX):
    """Return text as one line of at most limit bytes."""
    text = "".join(c if c.isprintable() else " " for c in text)
    return text.encode()[:limit].decode(errors="ignore")


def service(descriptor, strategy, invoke):
    """Return the gRPC handlers of a service whose calls invoke() answers."""
    handlers = {}
    for method in descriptor.methods:
        handlers[method.name] = grpc.unary_unary_rpc_method_handler(
            lambda request, context, name=method.name: invoke(name, request, context),
            request_deserializer=message_factory.GetMessageClass(method.input_type).FromString,
            response_serializer=lambda answer: answer.SerializeToString(),
        )
    return grpc.method_handlers_generic_handler(descriptor.full_name, handlers)


class Plugin:
    """Answers the calls of one node. Used by several threads at a time."""

    def __init__(self, policy, name, version, configure, schema=None, pure=False, majority_only=False):
        self._about = {"name": name, "version": version, "policy": policy}
        self._class = {"class": plugin_pb2.Class(pure=pure, majority_only=majority_only)}
        self._schema = json.dumps(schema).encode() if schema else b""
        self._make = configure
        self._strategy = None
        self._setup = threading.Lock()
        self._slots = threading.BoundedSemaphore(CALLS_MAX)

    def about(self, name, request, context):
        """Answer Plugin.Describe or Plugin.Configure."""
        return self.describe() if name == "Describe" else self.configure(request, context)

    def describe(self):
        """Answer Plugin.Describe."""
        known = self._class if self._strategy is not None else {}
        return plugin_pb2.DescribeResponse(**self._about, **known, settings_schema=self._schema)

    def configure(self, request, context):
        """Answer Plugin.Configure."""
        with self._setup:
            if self._strategy is not None:
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, "the plugin is configured already")
            settings = Settings(request.settings)
            strategy = self._guarded(lambda: self._make(settings), context)
            settings.close()
            if settings.faults:
                faults = [
                    plugin_pb2.SettingError(key=line(key, 256), reason=line(reason))
                    for key, reason in settings.faults[:100]
                ]
                return plugin_pb2.ConfigureResponse(errors=faults)
            self._strategy = strategy
            return plugin_pb2.ConfigureResponse(**self._about, **self._class)

    def call(self, name, request, context):
        """Answer a call of the policy's service."""
        if self._strategy is None:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "the plugin is not configured")
        if not self._slots.acquire(blocking=False):
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{CALLS_MAX} calls are in hand")
        try:
            answer = self._guarded(lambda: getattr(self._strategy, name.lower())(request), context)
        finally:
            self._slots.release()
        if answer.ByteSize() > ANSWER_BYTES_MAX:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"an answer of {answer.ByteSize()} bytes")
        return answer

    @staticmethod
    def _guarded(run, context):
        """Return what run() returns; its exceptions become a status."""
        try:
            return run()
        except Undecided as err:
            code, text = grpc.StatusCode.UNKNOWN, str(err)
        except Malformed as err:
            code, text = grpc.StatusCode.INVALID_ARGUMENT, str(err)
        except OutOfStep as err:
            code, text = grpc.StatusCode.FAILED_PRECONDITION, str(err)
        except Exception as err:  # A fault of the strategy must not end the process.
            code, text = grpc.StatusCode.INTERNAL, f"{type(err).__name__}: {err}"
            log("error", "the strategy raised an exception", error=text)
        context.abort(code, line(text))


def certificate():
    """Return a new private key and a certificate for it, both as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    cert = (
        x509.CertificateBuilder()
        .subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=1))
        .not_valid_after(now + datetime.timedelta(days=36500))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return private, cert


def version_in_common(offered):
    """Return the highest version that both speak, or the own one, which the node refuses."""
    versions = {int(v) for v in offered.split(",") if v.isdigit()}
    return max(versions & {CONTRACT}, default=CONTRACT)


def listen(server, credentials, environment):
    """Open the socket where the node expects it, and return network and address."""
    directory = environment.get("PLUGIN_UNIX_SOCKET_DIR", "")
    if os.name == "nt" or not directory:
        port = server.add_secure_port("127.0.0.1:0", credentials)
        return "tcp", f"127.0.0.1:{port}"
    path = os.path.join(directory, "plugin.sock")
    server.add_secure_port("unix:" + path, credentials)
    return "unix", path


class Stopped:
    """Whether the process is to end, as threads and signals say.

    An Event does not do: Python calls the handler of a signal in the main thread, which may hold
    the lock of the Event at that moment, or be about to wait without an end.
    """

    def __init__(self):
        self._told, self._tell = socket.socketpair()
        self._tell.setblocking(False)

    def set(self):
        try:
            self._tell.send(b"\0")
        except BlockingIOError:
            pass  # It has been told often enough.

    def by(self, number):
        """Have a signal stop the process. It is the only one with a handler."""
        signal.set_wakeup_fd(self._tell.fileno())  # Python writes there before anything else.
        signal.signal(number, lambda *_: None)

    def wait(self):
        self._told.recv(1)


def watch_parent(node, stop):
    """Call stop when the node has died and somebody else has become the parent."""
    pause = threading.Event()
    while os.getppid() == node:
        pause.wait(PARENT_INTERVAL)
    stop()


def serve(policy, contract, name, version, configure, schema=None, **promises):
    """Serve the plugin and end the process: the whole of a plugin's main program.

    policy is a plugin_pb2.Policy, contract the descriptor of its service, and configure
    makes the strategy of its Settings. The schema is a JSON Schema of the settings, by
    which a node checks them before. The promises are pure and majority_only.
    """
    environment = os.environ
    if environment.get(COOKIE[0]) != COOKIE[1]:
        print(f"{name} {version} is a plugin for Quorate: it is started by the nodes of a"
              " cluster, not by hand.", file=sys.stderr)
        sys.exit(BY_HAND)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Whoever interrupts the node means the node.

    # One thread for each call in hand, and some for health checks beside them.
    server = grpc.server(futures.ThreadPoolExecutor(CALLS_MAX + 4), options=[
        ("grpc.max_receive_message_length", REQUEST_BYTES_MAX),
        ("grpc.max_send_message_length", ANSWER_BYTES_MAX),
        ("grpc.so_reuseport", 0),
    ])
    plugin = Plugin(policy, name, version, configure, schema, **promises)
    stopped = Stopped()

    def raw(answer):
        # These messages are so small that their bytes are written here.
        return grpc.unary_unary_rpc_method_handler(lambda request, context: answer())

    def shut_down():
        stopped.set()
        return b""

    server.add_generic_rpc_handlers((
        service(plugin_pb2.DESCRIPTOR.services_by_name["Plugin"], plugin, plugin.about),
        service(contract, plugin, plugin.call),
        grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": raw(lambda: b"\x08\x01")}),
        grpc.method_handlers_generic_handler("plugin.GRPCController", {"Shutdown": raw(shut_down)}),
    ))

    private, cert = certificate()
    credentials = grpc.ssl_server_credentials(
        [(private, cert.public_bytes(serialization.Encoding.PEM))],
        root_certificates=environment.get("PLUGIN_CLIENT_CERT", "").encode(),
        require_client_auth=True,
    )
    try:
        network, address = listen(server, credentials, environment)
    except RuntimeError as err:
        log("error", "the plugin cannot listen", error=str(err))
        sys.exit(NOT_SERVED)
    server.start()
    stopped.by(signal.SIGTERM)
    node = int(environment.get("QUORATE_PLUGIN_HOST_PID") or os.getppid())
    threading.Thread(target=watch_parent, args=(node, stopped.set), daemon=True).start()

    der = base64.b64encode(cert.public_bytes(serialization.Encoding.DER)).decode().rstrip("=")
    version_chosen = version_in_common(environment.get("PLUGIN_PROTOCOL_VERSIONS", ""))
    print(f"1|{version_chosen}|{network}|{address}|grpc|{der}", flush=True)
    stopped.wait()
    server.stop(GRACE).wait()
    # Threads of calls that do not end must not keep the process.
    sys.stdout.flush()
    os._exit(0)

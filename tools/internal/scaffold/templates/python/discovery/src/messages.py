"""Between the messages of the contract and the strategy, which sees plain objects."""

import dataclasses

from quorate.plugin.v1 import discovery_pb2, plugin_pb2
from quorate_plugin import line

POLICY = plugin_pb2.POLICY_DISCOVERY
CONTRACT = discovery_pb2.DESCRIPTOR.services_by_name["Discovery"]


@dataclasses.dataclass(frozen=True)
class Target:
    """One contact point. The host is a name in lower case, or an IP address without brackets."""

    host: str
    port: int = 0  # 0: not known.

    @staticmethod
    def parse(text):
        """Return the target of a text such as 10.0.0.1:7946 or [::1]:7946. It may raise ValueError."""
        host, colon, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]").lower()
        if not colon or not host or not 1 <= int(port) <= 65535:
            raise ValueError(f"{text!r} is not host:port")
        return Target(host, int(port))


class Service:
    """Answers the call of the service Discovery by a strategy."""

    def __init__(self, strategy):
        self._strategy = strategy

    def lookup(self, request):
        """Answer Discovery.Lookup."""
        targets, reason, seconds = self._strategy.lookup(request.service, request.port, request.protocol)
        targets = list(dict.fromkeys(targets))  # Each once, in their order.
        return discovery_pb2.LookupResponse(
            host=[t.host for t in targets], port=[t.port for t in targets], ip=[b""] * len(targets),
            reason=line(reason), ttl_nanos=int(seconds * 1e9),
        )

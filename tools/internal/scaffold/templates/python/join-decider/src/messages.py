"""Between the messages of the contract and the strategy, which sees plain objects."""

import dataclasses
import ipaddress

from quorate.plugin.v1 import joindecider_pb2, plugin_pb2
from quorate_plugin import Malformed, line

POLICY = plugin_pb2.POLICY_JOIN_DECIDER
CONTRACT = joindecider_pb2.DESCRIPTOR.services_by_name["JoinDecider"]

PROBE = joindecider_pb2.JOIN_ACTION_NONE
JOIN = joindecider_pb2.JOIN_ACTION_JOIN
FORM = joindecider_pb2.JOIN_ACTION_FORM


@dataclasses.dataclass
class Point:
    """One contact point."""

    address: str  # "host:port"
    answered: float  # How many seconds ago it last answered; negative: never.


@dataclasses.dataclass
class Observations:
    """What a node without a cluster knows."""

    service: str
    self: str  # Its own contact point, "host:port".
    required: int  # How many contact points must answer before a cluster may be formed.
    margin: float  # For how many seconds they must have been unchanged before that,
    stable: float  # and for how many they have been.
    points: list
    seeds: list  # Members of a cluster that can be joined, "host:port".

    @property
    def answering(self):
        """The contact points that have answered, in their order."""
        return [p for p in self.points if p.answered >= 0]


@dataclasses.dataclass
class Decision:
    """What the node does next: PROBE, JOIN some of the seeds, by their places, or FORM."""

    action: int
    reason: str
    seeds: list = dataclasses.field(default_factory=list)


def order(address):
    """Return what orders addresses as all nodes do: by number, names last, then by port."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return (2, 0, host, int(port))
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return (0 if ip.version == 4 else 1, int(ip), "", int(port))


class Service:
    """Answers the call of the service JoinDecider by a strategy."""

    def __init__(self, strategy):
        self._strategy = strategy

    def decide(self, request):
        """Answer JoinDecider.Decide."""
        if not len(request.contact_point) == len(request.answered_nanos) == len(request.seed_node_count):
            raise Malformed("contact_point: columns of different lengths")
        decision = self._strategy.decide(Observations(
            service=request.service, self=request.self, required=request.required_contact_points,
            margin=request.stable_margin_nanos / 1e9, stable=request.stable_nanos / 1e9,
            points=[Point(a, n / 1e9) for a, n in zip(request.contact_point, request.answered_nanos)],
            seeds=list(request.seed_node),
        ))
        return joindecider_pb2.JoinDeciderDecideResponse(
            action=decision.action, seed_node=decision.seeds, reason=line(decision.reason))

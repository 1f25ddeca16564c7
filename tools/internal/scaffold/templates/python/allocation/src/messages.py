"""Between the messages of the contract and the strategy, which sees plain objects."""

import dataclasses

from quorate.plugin.v1 import allocation_pb2, plugin_pb2
from quorate_plugin import Malformed, line

POLICY = plugin_pb2.POLICY_ALLOCATION
CONTRACT = allocation_pb2.DESCRIPTOR.services_by_name["Allocation"]


@dataclasses.dataclass
class Region:
    """The part of one node that hosts shards."""

    place: int  # In the request.
    id: str
    zone: str
    version: str
    roles: list
    eligible: bool  # Shards may be placed here.
    movable: bool  # Shards may be taken from here: it answers, and hosts them.
    capacity: int  # The share of the shards that it can bear, relative to the others. From 1.
    load: float  # From 0, idle or not known, to 1.
    shards: list  # Those that it has, and that are not on their way elsewhere.
    moves: int = 0  # Moves in flight that it takes part in.
    coming: int = 0  # Shards on their way to it.

    @property
    def count(self):
        """How many shards it will have when the moves in flight have ended."""
        return len(self.shards) + self.coming


@dataclasses.dataclass
class Placement:
    """One shard gets a home."""

    shard: int
    region: Region
    reason: str


@dataclasses.dataclass
class Move:
    """One shard changes its home."""

    shard: int
    source: Region
    target: Region
    reason: str


@dataclasses.dataclass
class Budget:
    """How many shards may begin to move now."""

    room: int  # In all.
    per_region: int  # For each region, with the moves in flight that it takes part in. 0: no limit.

    def allows(self, region):
        """Whether one more move may have this region as its source or its target."""
        return self.per_region == 0 or region.moves < self.per_region


class Reasons:
    """The column of reasons of an answer: each text once, and its place for each element."""

    def __init__(self):
        self.texts, self.column = {}, []

    def add(self, text):
        """Add the reason of the next element."""
        self.column.append(self.texts.setdefault(text, len(self.texts)))


class Service:
    """Answers the calls of the service Allocation by a strategy."""

    def __init__(self, strategy):
        self._strategy = strategy

    def allocate(self, request):
        """Answer Allocation.Allocate."""
        placements, left_out = self._strategy.allocate(request.kind, regions_of(request.regions), list(request.shard))
        answer, reasons = allocation_pb2.AllocateResponse(left_out=line(left_out)), Reasons()
        for p in placements:
            answer.shard.append(p.shard)
            answer.region.append(p.region.place)
            reasons.add(p.reason)
        answer.reason.extend(reasons.column)
        answer.reasons.extend(map(line, reasons.texts))
        return answer

    def rebalance(self, request):
        """Answer Allocation.Rebalance."""
        regions, flying = regions_of(request.regions), request.budget
        if not len(flying.shard) == len(flying.to) == len(getattr(flying, "from")):
            raise Malformed("budget: columns of different lengths")
        for shard, source, target in zip(flying.shard, getattr(flying, "from"), flying.to):
            # A move may have ends that host nothing, which are no regions of the request.
            if source < len(regions):
                regions[source].moves += 1
                regions[source].shards.remove(shard)
            if target < len(regions):
                regions[target].moves += 1
                regions[target].coming += 1
        budget = Budget(max(0, flying.simultaneous - len(flying.shard)), flying.per_region)
        moves, summary = self._strategy.rebalance(request.kind, regions, request.fitness, budget)
        answer, reasons = allocation_pb2.RebalanceResponse(summary=line(summary)), Reasons()
        for m in moves:
            answer.shard.append(m.shard)
            getattr(answer, "from").append(m.source.place)
            answer.to.append(m.target.place)
            reasons.add(m.reason)
        answer.reason.extend(reasons.column)
        answer.reasons.extend(map(line, reasons.texts))
        return answer


def regions_of(table):
    """Return the regions of a request. A column that is too short raises Malformed."""
    try:
        regions, first = [], 0
        for place, name in enumerate(table.id):
            behind = first + table.shard_count[place]
            regions.append(Region(
                place=place, id=name, zone=table.text[table.zone[place]], version=table.text[table.app_version[place]],
                roles=list(table.role_sets[table.roles[place]].role), eligible=table.condition[place] == 0,
                movable=not table.condition[place] & ~1, capacity=min(max(1, table.capacity[place]), 1 << 20),
                load=table.load[place], shards=list(table.shard[first:behind]),
            ))
            first = behind
        return regions
    except IndexError as err:
        raise Malformed("regions: a column is too short, or a place beyond its table") from err

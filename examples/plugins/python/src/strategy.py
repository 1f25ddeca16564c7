# Copyright The Quorate Authors
# SPDX-License-Identifier: Apache-2.0

"""The strategy: shards live on nodes that carry the right labels."""

import heapq

from messages import Move, Placement


class Rule:
    """Which nodes may host the shards of a kind of entity, by their roles."""

    def __init__(self, settings, key, value):
        """Read a rule: {require: [role, ...], avoid: [role, ...]}."""
        self.require, self.avoid = set(), set()
        if not isinstance(value, dict):
            settings.wrong(key, f"{value!r} is no object with require and avoid")
            return
        for name, roles in value.items():
            if name not in ("require", "avoid"):
                settings.wrong(f"{key}.{name}", "there is no such setting; there are require and avoid")
            elif not isinstance(roles, list) or not all(isinstance(role, str) and role for role in roles):
                settings.wrong(f"{key}.{name}", f"{roles!r} is no list of roles")
            else:
                setattr(self, name, set(roles))
        if both := sorted(self.require & self.avoid):
            settings.wrong(key, f"{both[0]} is required and avoided: no node has that")

    def fits(self, region):
        """Whether a region may host shards of the kind."""
        return self.require.issubset(region.roles) and self.avoid.isdisjoint(region.roles)

    def __str__(self):
        wants = [f"with {role}" for role in sorted(self.require)] + [f"without {role}" for role in sorted(self.avoid)]
        return " and ".join(wants) or "with any labels"


class Strategy:
    """Shards of a kind are spread over the nodes whose labels fit it, and over no others.

    The labels of a node are its roles. Among the nodes that fit, each gets shards in
    proportion to its capacity. Where none fits, shards wait for one: to place them anywhere
    would break what the operator has asked for.
    """

    CLASS = {"pure": True}

    # What a node checks the settings by before the plugin gets them, and shows of them.
    SCHEMA = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "kinds": {
                "type": "object", "additionalProperties": {"$ref": "#/$defs/rule"},
                "description": "The rule for the shards of each kind of entity.",
            },
            "others": {"$ref": "#/$defs/rule", "description": "The rule for all other kinds."},
            "skew": {
                "type": "integer", "minimum": 1, "default": 1,
                "description": "How many shards more a region may have than another.",
            },
        },
        "$defs": {
            "rule": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "require": {"$ref": "#/$defs/roles", "description": "Roles that a node must have."},
                    "avoid": {"$ref": "#/$defs/roles", "description": "Roles that a node must not have."},
                },
            },
            "roles": {"type": "array", "items": {"type": "string", "minLength": 1}},
        },
    }

    def __init__(self, settings):
        """Take the settings: kinds, a rule for each kind of entity; others, for the rest; skew."""
        self.kinds = {
            kind: Rule(settings, f"kinds.{kind}", rule) for kind, rule in settings.take("kinds", dict, {}).items()}
        self.others = Rule(settings, "others", settings.take("others", dict, {}))
        self.skew = settings.take("skew", int, 1)
        if self.skew < 1:
            settings.wrong("skew", f"{self.skew} is less than 1")

    @staticmethod
    def share(region):
        """Return what orders regions: the best for one more shard has the least."""
        return (region.count / region.capacity, region.place)

    def allocate(self, kind, regions, shards):
        """Return a Placement for each shard, and why shards are left out."""
        rule = self.kinds.get(kind, self.others)
        heap = [(self.share(r), r.place) for r in regions if r.eligible and rule.fits(r)]
        if not heap:
            return [], f"labels: no region {rule} can take shards"
        heapq.heapify(heap)
        placements = []
        for shard in shards:  # Each sees the placements of those before.
            region = regions[heap[0][1]]
            placements.append(Placement(shard, region, f"labels: fewest of the regions {rule}"))
            region.coming += 1
            heapq.heapreplace(heap, (self.share(region), region.place))
        return placements, ""

    def rebalance(self, kind, regions, fitness, budget):
        """Return the Moves that are most useful: away from nodes that do not fit, then evenly."""
        if not (fitness.one_version and fitness.none_unreachable and fitness.none_joining):
            return [], "labels: not now: the members are changing"
        rule, moves = self.kinds.get(kind, self.others), []
        while len(moves) < budget.room:
            targets = [r for r in regions if r.eligible and rule.fits(r) and budget.allows(r)]
            sources = [r for r in regions if r.movable and r.shards and budget.allows(r)]
            if not targets or not sources:
                break
            # A region that does not fit comes before any that does.
            source = max(sources, key=lambda r: (not rule.fits(r), self.share(r)))
            target = min(targets, key=self.share)
            reason = f"labels: to a region {rule}"
            if rule.fits(source):
                reason = "labels: evens out"
                # The target must be better off with one more than the source is now.
                if (target.count + self.skew) / target.capacity >= source.count / source.capacity:
                    break
            moves.append(Move(source.shards.pop(0), source, target, reason))
            source.moves, target.moves, target.coming = source.moves + 1, target.moves + 1, target.coming + 1
        return moves, f"labels: {len(moves)} shards move to or among the regions {rule}"

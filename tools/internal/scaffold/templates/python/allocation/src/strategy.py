"""The strategy: where shards live. This is the file to change."""

import heapq

from messages import Move, Placement


class Strategy:
    """Gives every region shards in proportion to its capacity.

    Equal requests must get equal answers, since the class says so.
    """

    CLASS = {"pure": True}

    # What a node checks the settings by before the plugin gets them, and shows of them.
    SCHEMA = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "skew": {
                "type": "integer", "minimum": 1, "default": 1,
                "description": "How many shards more a region may have than another.",
            },
        },
    }

    def __init__(self, settings):
        """Take the settings. Whatever is not taken here is refused."""
        self.skew = settings.take("skew", int, 1)
        if self.skew < 1:
            settings.wrong("skew", f"{self.skew} is less than 1")

    @staticmethod
    def share(region):
        """Return what orders regions: the best for one more shard has the least."""
        return (region.count / region.capacity, region.place)

    def allocate(self, kind, regions, shards):
        """Return a Placement for each shard, and why shards are left out."""
        heap = [(self.share(r), r.place) for r in regions if r.eligible]
        if not heap:
            return [], f"no region can take shards of {kind}"
        heapq.heapify(heap)
        placements = []
        for shard in shards:  # Each sees the placements of those before.
            region = regions[heap[0][1]]
            placements.append(Placement(shard, region, "fewest shards for its capacity"))
            region.coming += 1
            heapq.heapreplace(heap, (self.share(region), region.place))
        return placements, ""

    def rebalance(self, kind, regions, fitness, budget):
        """Return the Moves that are most useful, and what is being evened out."""
        if not (fitness.one_version and fitness.none_unreachable and fitness.none_joining):
            return [], "not now: the members are changing"
        moves = []
        while len(moves) < budget.room:
            sources = [r for r in regions if r.movable and r.shards and budget.allows(r)]
            targets = [r for r in regions if r.eligible and budget.allows(r)]
            if not sources or not targets:
                break
            source, target = max(sources, key=self.share), min(targets, key=self.share)
            # The target must be better off with one more than the source is now.
            if (target.count + self.skew) / target.capacity >= source.count / source.capacity:
                break
            moves.append(Move(source.shards.pop(0), source, target, "evens out"))
            source.moves, target.moves, target.coming = source.moves + 1, target.moves + 1, target.coming + 1
        return moves, f"{len(moves)} shards of {kind} move"

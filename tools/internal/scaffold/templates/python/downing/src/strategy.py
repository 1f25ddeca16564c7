"""The strategy: who must go after a partition. This is the file to change.

The other sides ask their own copy and cannot talk to this one: decisions must be such
that at most one side survives all the same. Read docs/downing.md before you change it.
"""

from messages import down_side, keep_side, wait


class Strategy:
    """Keeps the side that has a majority of the voters, once that has lasted."""

    # Who lets a side without a majority survive must not promise majority_only.
    CLASS = {"pure": True, "majority_only": True}

    # What a node checks the settings by before the plugin gets them, and shows of them.
    SCHEMA = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "spare-role": {
                "type": "string", "default": "",
                "description": "Of a broken link, a member with this role stays if it can.",
            },
        },
    }

    def __init__(self, settings):
        """Take the settings. Whatever is not taken here is refused."""
        self.spare = settings.take("spare-role", str, "")

    def decide(self, view):
        """Return a Decision about a View."""
        if not view.lost and not view.links:
            return wait("everybody is reachable")
        if not view.voters:
            return wait("there are no voters yet, so no side can win")
        if not view.wins(view.side):
            return down_side(view, f"this side has no majority: {view.tally(view.side)}")
        kept = set(view.side)
        for link in view.links:  # One end of each goes, if the rest still has a majority.
            if all(place in kept for place in link):
                for place in sorted(link, key=lambda p: self.worth(view.members[p])):
                    if view.members[place].can_be_downed and view.wins(kept - {place}):
                        kept.discard(place)
                        break
        down = [m for m in view.members if m.can_be_downed and m.place not in kept]
        if not down:
            return wait("a link is broken of which neither end can be spared")
        return keep_side(down, f"this side has {view.tally(kept)}; {len(down)} members go")

    def worth(self, member):
        """Return what orders the ends of a broken link: the one with the least goes first."""
        age = -member.up_number if member.up_number else float("-inf")
        return (member.votes, self.spare in member.roles, age, -member.place)

"""Between the messages of the contract and the strategy, which sees plain objects."""

import dataclasses

from quorate.plugin.v1 import downing_pb2, plugin_pb2
from quorate_plugin import Malformed, line

POLICY = plugin_pb2.POLICY_DOWNING
CONTRACT = downing_pb2.DESCRIPTOR.services_by_name["Downing"]


@dataclasses.dataclass
class Member:
    """One member of the cluster."""

    place: int  # In the request. Members are sorted by their addresses.
    address: tuple  # host, port, uid
    status: int  # A downing_pb2.MemberStatus.
    up_number: int  # Lower is older. 0: not up yet.
    zone: str
    roles: list

    @property
    def votes(self):
        """Whether its vote counts, if it is a voter: it is up, and neither exiting nor down."""
        return downing_pb2.MEMBER_STATUS_UP <= self.status <= downing_pb2.MEMBER_STATUS_LEAVING

    @property
    def can_be_downed(self):
        """Whether a decision may name it: not once it is exiting or down."""
        return downing_pb2.MEMBER_STATUS_JOINING <= self.status <= downing_pb2.MEMBER_STATUS_LEAVING


@dataclasses.dataclass
class View:
    """What one side of a partition knows."""

    members: list
    asking: Member  # The member that asks. A pure strategy does not look at it.
    side: set  # The places of the members that belong together.
    links: list  # Broken links within the side: pairs of places, the lower first; sorted.
    voters: list  # Sets of voters: for each the list of their places, and the place of the lowest.
    stable: float  # For how many seconds nothing has changed,
    unstable: float  # and for how many somebody complains. Both differ from node to node.

    @property
    def lost(self):
        """The members that are not on the side and can be downed."""
        return [m for m in self.members if m.place not in self.side and m.can_be_downed]

    def wins(self, places):
        """Whether these members have a majority of every set of voters, or half with the lowest."""
        for places_of_voters, lowest in self.voters:
            there = {p for p in places_of_voters if p in places and p < len(self.members) and self.members[p].votes}
            if 2 * len(there) < len(places_of_voters) or 2 * len(there) == len(places_of_voters) and lowest not in there:
                return False
        return bool(self.voters)

    def tally(self, places):
        """Say how many votes these members have in each set of voters."""
        return "; and ".join(
            f"{sum(p in places and p < len(self.members) and self.members[p].votes for p in voters)} of {len(voters)} voters"
            for voters, _ in self.voters)


@dataclasses.dataclass
class Decision:
    """Who must go. down has members; it must agree with the verdict."""

    verdict: int
    down: list
    reason: str


def wait(reason):
    """Nobody goes now."""
    return Decision(downing_pb2.VERDICT_NONE, [], reason)


def keep_side(down, reason):
    """The side goes on, without those who are downed."""
    return Decision(downing_pb2.VERDICT_KEEP_SIDE, down, reason)


def down_side(view, reason):
    """The side gives up."""
    down = [m for m in view.members if m.place in view.side and m.can_be_downed]
    return Decision(downing_pb2.VERDICT_DOWN_SIDE, down, reason)


class Service:
    """Answers the call of the service Downing by a strategy."""

    def __init__(self, strategy):
        self._strategy = strategy

    def decide(self, request):
        """Answer Downing.Decide."""
        try:
            view = view_of(request)
        except IndexError as err:
            raise Malformed("a column is too short, or a place is beyond its table") from err
        decision = self._strategy.decide(view)
        return downing_pb2.DowningDecideResponse(
            verdict=decision.verdict, down=sorted(m.place for m in decision.down), reason=line(decision.reason))


def view_of(request):
    """Return the view of a request."""
    nodes, table = request.nodes, request.members
    members = [
        Member(
            place=place, address=(nodes.host[place], nodes.port[place], nodes.uid[place]), status=status,
            up_number=table.up_number[place], zone=table.text[table.zone[place]],
            roles=list(table.role_sets[table.roles[place]].role),
        )
        for place, status in enumerate(table.status)
    ]
    side, links = side_of(members, request.complaints, set(request.seen))
    voters = []
    for voter_set in request.base:
        if voter_set.node:
            lowest = min(voter_set.node, key=lambda p: (nodes.host[p].encode(), nodes.port[p], nodes.uid[p]))
            voters.append((list(voter_set.node), lowest))
    return View(members, members[request.self], side, links, voters, request.stable_nanos / 1e9, request.unstable_nanos / 1e9)


def side_of(members, complaints, seen):
    """Return the places of the members that belong together, and the broken links between them.

    A member is on the side unless it is down, or somebody who is not down complains about it
    and it has not seen the present state, or an operator has commanded that it goes.
    """
    def counts(place):
        return place < len(members) and members[place].status != downing_pb2.MEMBER_STATUS_DOWN

    side = {m.place for m in members if counts(m.place)}
    pairs = []
    for i, (observer, subject) in enumerate(zip(complaints.observer, complaints.subject)):
        if observer != subject and counts(observer) and counts(subject):
            pairs.append((min(observer, subject), max(observer, subject)))
            if complaints.reach[i] == downing_pb2.REACH_TERMINATED or subject not in seen:
                side.discard(subject)

    def stays(place):
        return place in side and members[place].status != downing_pb2.MEMBER_STATUS_EXITING

    return side, sorted({(a, b) for a, b in pairs if stays(a) and stays(b)})

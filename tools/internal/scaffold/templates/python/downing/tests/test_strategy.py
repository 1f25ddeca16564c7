"""What the strategy decides, asked as a node asks."""

import unittest

from messages import Service
from quorate.plugin.v1 import downing_pb2, plugin_pb2
from quorate_plugin import Malformed, Settings
from strategy import Strategy


def ask(n, unreachable=(), links=(), text=b"{}", voters=None):
    """Ask about n members, all of them voters: the first complains about those unreachable."""
    reached = [p for p in range(n) if p not in unreachable]
    pairs = [(reached[0], p) for p in unreachable] + list(links)
    return Service(Strategy(Settings(text))).decide(downing_pb2.DowningDecideRequest(
        nodes=downing_pb2.Nodes(host=[f"10.0.0.{i + 1}" for i in range(n)], port=[7946] * n, uid=range(1, n + 1)),
        members=downing_pb2.Members(
            status=[downing_pb2.MEMBER_STATUS_UP] * n, up_number=range(1, n + 1), zone=[0] * n, app_version=[0] * n,
            roles=[0] * (n - 1) + [1], text=[""], role_sets=[plugin_pb2.RoleSet(), plugin_pb2.RoleSet(role=["gold"])],
        ),
        self=reached[0],
        complaints=downing_pb2.Complaints(
            observer=[a for a, _ in pairs], subject=[b for _, b in pairs], reach=[downing_pb2.REACH_UNREACHABLE] * len(pairs)),
        seen=reached, base=[downing_pb2.Voters(node=range(n) if voters is None else voters)],
    ))


class TestStrategy(unittest.TestCase):
    def test_nobody_goes_while_everybody_is_reached(self):
        self.assertEqual(ask(3).verdict, downing_pb2.VERDICT_NONE)

    def test_of_two_sides_the_majority_stays(self):
        big, small = ask(5, unreachable=[3, 4]), ask(5, unreachable=[0, 1, 2])
        self.assertEqual((big.verdict, list(big.down)), (downing_pb2.VERDICT_KEEP_SIDE, [3, 4]))
        self.assertEqual((small.verdict, list(small.down)), (downing_pb2.VERDICT_DOWN_SIDE, [3, 4]))

    def test_of_two_halves_the_one_with_the_lowest_voter_stays(self):
        lower, upper = ask(4, unreachable=[2, 3]), ask(4, unreachable=[0, 1])
        self.assertEqual(lower.verdict, downing_pb2.VERDICT_KEEP_SIDE)
        self.assertEqual((upper.verdict, list(upper.down)), (downing_pb2.VERDICT_DOWN_SIDE, [2, 3]))

    def test_of_a_broken_link_the_younger_end_goes_unless_it_is_spared(self):
        self.assertEqual(list(ask(3, links=[(1, 2)]).down), [2])
        self.assertEqual(list(ask(3, links=[(1, 2)], text=b'{"spare-role": "gold"}').down), [1])

    def test_nobody_goes_while_there_are_no_voters(self):
        self.assertEqual(ask(3, unreachable=[2], voters=[]).verdict, downing_pb2.VERDICT_NONE)

    def test_a_request_with_short_columns_is_refused(self):
        with self.assertRaises(Malformed):
            Service(Strategy(Settings(b"{}"))).decide(downing_pb2.DowningDecideRequest(
                members=downing_pb2.Members(status=[downing_pb2.MEMBER_STATUS_UP])))

    def test_wrong_settings_are_named(self):
        settings = Settings(b'{"spare-role": 1, "spare": "x"}')
        Strategy(settings)
        settings.close()
        self.assertEqual([key for key, _ in settings.faults], ["spare-role", "spare"])


if __name__ == "__main__":
    unittest.main()

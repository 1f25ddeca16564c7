"""What the strategy decides, asked as a node asks."""

import unittest

from messages import Service
from quorate.plugin.v1 import allocation_pb2, plugin_pb2
from quorate_plugin import Malformed, Settings
from strategy import Strategy


def service(text=b"{}"):
    settings = Settings(text)
    return Service(Strategy(settings))


def regions(*shards):
    """Regions a, b, ... with these shards."""
    n = len(shards)
    return allocation_pb2.Regions(
        id=[chr(ord("a") + i) for i in range(n)], zone=[0] * n, app_version=[0] * n, roles=[0] * n,
        condition=[0] * n, capacity=[1] * n, load=[0] * n, shard_count=[len(s) for s in shards],
        shard=[s for list in shards for s in list], text=[""], role_sets=[plugin_pb2.RoleSet()],
    )


FIT = allocation_pb2.Fitness(one_version=True, none_unreachable=True, none_joining=True)


class TestStrategy(unittest.TestCase):
    def test_shards_go_where_there_are_fewest(self):
        request = allocation_pb2.AllocateRequest(kind="k", regions=regions([1, 2, 3], [4]), shard=[5, 6, 7])
        answer = service().allocate(request)
        self.assertEqual(list(answer.shard), [5, 6, 7])
        self.assertEqual(list(answer.region), [1, 1, 0])
        self.assertEqual(len(answer.reason), 3)

    def test_what_cannot_be_placed_is_left_out_with_a_reason(self):
        request = allocation_pb2.AllocateRequest(kind="k", regions=regions([1]), shard=[5])
        request.regions.condition[0] = 1
        answer = service().allocate(request)
        self.assertFalse(answer.shard)
        self.assertIn("no region", answer.left_out)

    def test_moves_even_out_and_keep_the_budget(self):
        request = allocation_pb2.RebalanceRequest(kind="k", regions=regions([1, 2, 3, 4, 5, 6], []), fitness=FIT)
        request.budget.simultaneous = 2
        answer = service().rebalance(request)
        self.assertEqual(list(answer.shard), [1, 2])
        self.assertEqual(list(getattr(answer, "from")), [0, 0])
        self.assertEqual(list(answer.to), [1, 1])

    def test_even_regions_are_left_alone(self):
        request = allocation_pb2.RebalanceRequest(kind="k", regions=regions([1, 2], [3]), fitness=FIT)
        request.budget.simultaneous = 9
        self.assertFalse(service().rebalance(request).shard)

    def test_a_request_with_short_columns_is_refused(self):
        request = allocation_pb2.AllocateRequest(kind="k", regions=regions([1]), shard=[5])
        del request.regions.zone[:]
        with self.assertRaises(Malformed):
            service().allocate(request)

    def test_wrong_settings_are_named(self):
        settings = Settings(b'{"skew": 0, "skwe": 2}')
        Strategy(settings)
        settings.close()
        self.assertEqual([key for key, _ in settings.faults], ["skew", "skwe"])


if __name__ == "__main__":
    unittest.main()

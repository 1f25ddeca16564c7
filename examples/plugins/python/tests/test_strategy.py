# Copyright The Quorate Authors
# SPDX-License-Identifier: Apache-2.0

"""What the strategy decides, asked as a node asks."""

import unittest

from messages import Placement, Service
from quorate.plugin.v1 import allocation_pb2, plugin_pb2
from quorate_plugin import Settings
from strategy import Strategy

GPU = b'{"kinds": {"model": {"require": ["gpu"]}}, "others": {"avoid": ["gpu"]}}'
FIT = allocation_pb2.Fitness(one_version=True, none_unreachable=True, none_joining=True)


def service(text=GPU):
    settings = Settings(text)
    made = Service(Strategy(settings))
    settings.close()
    assert not settings.faults, settings.faults
    return made


def regions(**shards):
    """Regions with these shards; a region whose name begins with g has the role gpu."""
    n = len(shards)
    return allocation_pb2.Regions(
        id=list(shards), zone=[0] * n, app_version=[0] * n, roles=[int(name.startswith("g")) for name in shards],
        condition=[0] * n, capacity=[1] * n, load=[0] * n, shard_count=[len(s) for s in shards.values()],
        shard=[s for list in shards.values() for s in list], text=[""],
        role_sets=[plugin_pb2.RoleSet(), plugin_pb2.RoleSet(role=["gpu", "ssd"])],
    )


def allocate(kind, table, shards, text=GPU):
    answer = service(text).allocate(allocation_pb2.AllocateRequest(kind=kind, regions=table, shard=shards))
    return [table.id[place] for place in answer.region], answer.left_out


def rebalance(kind, table, simultaneous=9, per_region=0):
    request = allocation_pb2.RebalanceRequest(
        kind=kind, regions=table, fitness=FIT, budget=allocation_pb2.Budget(simultaneous=simultaneous, per_region=per_region))
    answer = service().rebalance(request)
    ends = zip(answer.shard, getattr(answer, "from"), answer.to)
    return [(shard, table.id[source], table.id[target]) for shard, source, target in ends]


class TestLabels(unittest.TestCase):
    def test_reasons_are_cut_to_the_bytes_that_a_node_takes(self):
        class Wordy:
            def allocate(self, kind, regions, shards):
                return [Placement(shard, regions[0], "ö" * 2000) for shard in shards], "ö" * 2000

        answer = Service(Wordy()).allocate(allocation_pb2.AllocateRequest(regions=regions(a=[]), shard=[1, 2]))
        self.assertEqual([len(text.encode()) for text in answer.reasons], [1024])
        self.assertEqual(len(answer.left_out.encode()), 1024)

    def test_a_kind_lives_on_the_nodes_that_its_rule_requires(self):
        self.assertEqual(allocate("model", regions(a=[], g1=[], g2=[]), [1, 2, 3]), (["g1", "g2", "g1"], ""))

    def test_all_others_avoid_them(self):
        self.assertEqual(allocate("session", regions(a=[7], b=[], g1=[]), [1, 2]), (["b", "a"], ""))

    def test_without_a_node_that_fits_shards_wait(self):
        placed, left_out = allocate("model", regions(a=[], b=[]), [1])
        self.assertEqual(placed, [])
        self.assertIn("no region with gpu", left_out)

    def test_without_rules_all_nodes_share(self):
        self.assertEqual(allocate("model", regions(a=[7], g1=[]), [1, 2, 3], b"")[0], ["g1", "a", "g1"])

    def test_capacity_counts(self):
        table = regions(g1=[], g2=[])
        table.capacity[1] = 3
        self.assertEqual(allocate("model", table, [1, 2, 3, 4])[0].count("g2"), 3)

    def test_shards_move_away_from_nodes_that_do_not_fit_first(self):
        moves = rebalance("model", regions(a=[1], g1=[2, 3, 4, 5], g2=[]), simultaneous=2)
        self.assertEqual(moves, [(1, "a", "g2"), (2, "g1", "g2")])

    def test_even_nodes_are_left_alone(self):
        self.assertEqual(rebalance("model", regions(a=[], g1=[1, 2], g2=[3])), [])

    def test_the_budget_of_a_region_is_kept(self):
        moves = rebalance("model", regions(a=[1, 2, 3, 4], g1=[], g2=[]), per_region=2)
        self.assertEqual(moves, [(1, "a", "g1"), (2, "a", "g2")])

    def test_wrong_settings_are_named(self):
        for text, keys in {
            b'{"kinds": {"model": {"require": ["gpu"], "aviod": ["spot"]}}}': ["kinds.model.aviod"],
            b'{"kinds": {"model": {"require": "gpu"}}}': ["kinds.model.require"],
            b'{"kinds": {"model": "gpu"}}': ["kinds.model"],
            b'{"others": {"require": ["gpu"], "avoid": ["gpu"]}}': ["others"],
            b'{"kinds": []}': ["kinds"],
            b'{"skew": 0, "skwe": 1}': ["skew", "skwe"],
            b"[]": [""],
        }.items():
            settings = Settings(text)
            Strategy(settings)
            settings.close()
            self.assertEqual([key for key, _ in settings.faults], keys, text)


if __name__ == "__main__":
    unittest.main()

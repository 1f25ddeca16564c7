"""What the strategy decides, asked as a node asks."""

import unittest

from messages import FORM, JOIN, PROBE, Service, order
from quorate.plugin.v1 import joindecider_pb2
from quorate_plugin import Malformed, Settings
from strategy import Strategy


def ask(text=b"{}", **changes):
    """Ask for 10.0.0.9, which has found 10.0.0.10 as well; both answer."""
    request = dict(
        service="bank", self="10.0.0.9:7946", required_contact_points=2, stable_margin_nanos=5, stable_nanos=5,
        contact_point=["10.0.0.9:7946", "10.0.0.10:7946"], answered_nanos=[0, 0], seed_node_count=[0, 0],
    )
    request.update(changes)
    return Service(Strategy(Settings(text))).decide(joindecider_pb2.JoinDeciderDecideRequest(**request))


class TestStrategy(unittest.TestCase):
    def test_a_cluster_that_goes_on_is_joined(self):
        answer = ask(seed_node=["10.0.0.7:7946", "10.0.0.8:7946"], seed_node_count=[0, 2])
        self.assertEqual((answer.action, list(answer.seed_node)), (JOIN, [0, 1]))

    def test_only_the_lowest_address_forms_a_cluster(self):
        self.assertEqual(ask().action, FORM)
        self.assertEqual(ask(self="10.0.0.10:7946").action, PROBE)

    def test_it_waits_for_answers_and_for_the_margin(self):
        for changes in {"answered_nanos": [0, -1]}, {"stable_nanos": 4}, {"required_contact_points": 3}:
            answer = ask(**changes)
            self.assertEqual(answer.action, PROBE, changes)
            self.assertTrue(answer.reason)

    def test_the_settings_may_forbid_to_form_one(self):
        self.assertEqual(ask(b'{"form": false}').action, PROBE)

    def test_addresses_are_ordered_as_numbers(self):
        addresses = ["10.0.0.9:1", "10.0.0.9:2", "10.0.0.10:1", "[2001:db8::1]:1", "a.example:1"]
        self.assertEqual(sorted(reversed(addresses), key=order), addresses)

    def test_a_request_with_short_columns_is_refused(self):
        with self.assertRaises(Malformed):
            ask(answered_nanos=[0])

    def test_wrong_settings_are_named(self):
        settings = Settings(b'{"form": 1, "from": true}')
        Strategy(settings)
        settings.close()
        self.assertEqual([key for key, _ in settings.faults], ["form", "from"])


if __name__ == "__main__":
    unittest.main()

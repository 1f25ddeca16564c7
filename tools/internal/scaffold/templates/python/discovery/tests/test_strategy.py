"""What the strategy decides, asked as a node asks."""

import unittest

from messages import Service
from quorate.plugin.v1 import discovery_pb2
from quorate_plugin import Settings
from strategy import Strategy


class TestStrategy(unittest.TestCase):
    def test_the_targets_of_the_settings_are_found_each_once(self):
        strategy = Strategy(Settings(b'{"targets": ["10.0.0.1:7946", "[2001:db8::1]:7946", "10.0.0.1:7946"]}'))
        answer = Service(strategy).lookup(discovery_pb2.LookupRequest(service="bank"))
        self.assertEqual(list(answer.host), ["10.0.0.1", "2001:db8::1"])
        self.assertEqual(list(answer.port), [7946, 7946])
        self.assertEqual(len(answer.ip), 2)
        self.assertTrue(answer.reason)

    def test_wrong_settings_are_named(self):
        for text, keys in {
            b'{"targets": ["nowhere"]}': ["targets"],
            b'{"targets": ["host:0"]}': ["targets"],
            b'{"targets": [1]}': ["targets"],
            b'{"targets": "10.0.0.1:7946", "tragets": []}': ["targets", "tragets"],
        }.items():
            settings = Settings(text)
            Strategy(settings)
            settings.close()
            self.assertEqual([key for key, _ in settings.faults], keys, text)


if __name__ == "__main__":
    unittest.main()

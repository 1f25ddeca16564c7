"""What the strategy decides, asked as a node asks."""

import unittest

from messages import Service
from quorate.plugin.v1 import failuredetector_pb2
from quorate_plugin import Malformed, OutOfStep, Settings
from strategy import Strategy

SECOND = 10**9


def batch(number, answers=1, available=True, elapsed=1.0):
    """A batch about one node, with answers that have just arrived."""
    return failuredetector_pb2.JudgeRequest(
        number=number, elapsed_nanos=int(elapsed * SECOND) if number > 1 else 0, node=["a"], available=[available],
        answer_count=[answers], age_nanos=[0] * answers,
    )


class TestStrategy(unittest.TestCase):
    def setUp(self):
        self.service = Service(Strategy(Settings(b"{}")))

    def test_silence_is_suspected_and_an_answer_ends_that(self):
        for number in range(1, 11):
            self.assertFalse(self.service.judge(batch(number)).node)
        self.assertFalse(self.service.judge(batch(11, answers=0, elapsed=2.9)).node)
        suspected = self.service.judge(batch(12, answers=0))
        self.assertEqual(list(suspected.node), [0])
        self.assertIn("3.0 s are tolerated", suspected.reasons[suspected.reason[0]])
        self.assertFalse(self.service.judge(batch(13, answers=0, available=False)).node)
        self.assertEqual(list(self.service.judge(batch(14, available=False)).node), [0])

    def test_who_is_often_slow_is_given_more_time(self):
        self.service.judge(batch(1))
        self.service.judge(batch(2, elapsed=2))
        self.assertFalse(self.service.judge(batch(3, answers=0, elapsed=5)).node)

    def test_batches_out_of_step_are_refused(self):
        with self.assertRaises(OutOfStep):
            self.service.judge(batch(2))
        self.service.judge(batch(1))
        with self.assertRaises(OutOfStep):
            self.service.judge(batch(3))
        self.service.judge(batch(1))
        self.service.judge(batch(2))

    def test_nodes_are_kept_under_their_number(self):
        first = batch(1)
        first.nodes_number = 7
        self.assertEqual(self.service.judge(first).kept, 7)
        for number in range(2, 11):
            request = batch(number)
            request.nodes_number = 7
            del request.node[:]
            self.assertFalse(self.service.judge(request).node)
        unknown = batch(11, answers=0, elapsed=9)
        unknown.nodes_number = 8
        del unknown.node[:]
        with self.assertRaises(OutOfStep):
            self.service.judge(unknown)
        unknown.nodes_number = 7
        self.assertEqual(list(self.service.judge(unknown).node), [0])
        self.assertEqual(self.service.judge(batch(12)).kept, 0)

    def test_a_batch_with_short_columns_is_refused(self):
        request = batch(1)
        del request.age_nanos[:]
        with self.assertRaises(Malformed):
            self.service.judge(request)

    def test_wrong_settings_are_named(self):
        settings = Settings(b'{"factor": 0.5, "samples": "all", "fcator": 2}')
        Strategy(settings)
        settings.close()
        self.assertEqual([key for key, _ in settings.faults], ["samples", "factor", "fcator"])


if __name__ == "__main__":
    unittest.main()

"""What every plugin does, whatever it decides."""

import contextlib
import io
import json
import threading
import unittest

import grpc
from cryptography import x509

import quorate_plugin
from quorate.plugin.v1 import plugin_pb2


class Aborted(Exception):
    """What grpc raises to end a call with a status."""


class Context:
    """The part of a call's context that a plugin uses."""

    def abort(self, code, text):
        self.code, self.text = code, text
        raise Aborted(text)


class Strategy:
    """Answers one call by what it was given."""

    def __init__(self, answer):
        self.answer = answer

    def ask(self, request):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer() if callable(self.answer) else self.answer


def plugin(answer=None):
    """A plugin that was configured."""
    made = quorate_plugin.Plugin(
        plugin_pb2.POLICY_DISCOVERY, "tried", "1.0.0", lambda settings: Strategy(answer), pure=True)
    configured = made.configure(plugin_pb2.ConfigureRequest(), Context())
    assert configured.name == "tried" and getattr(configured, "class").pure, configured
    return made


class TestPlugin(unittest.TestCase):
    def test_it_says_what_it_is_before_it_is_configured(self):
        schema = {"type": "object", "additionalProperties": False}
        made = quorate_plugin.Plugin(plugin_pb2.POLICY_DISCOVERY, "tried", "1.0.0", lambda settings: None, schema)
        said = made.about("Describe", plugin_pb2.DescribeRequest(), Context())
        self.assertEqual((said.name, said.version, said.policy), ("tried", "1.0.0", plugin_pb2.POLICY_DISCOVERY))
        self.assertEqual(json.loads(said.settings_schema), schema)
        self.assertFalse(said.HasField("class"))
        self.assertTrue(plugin().about("Describe", plugin_pb2.DescribeRequest(), Context()).HasField("class"))

    def status(self, call):
        """The status with which a call ends."""
        context = Context()
        with self.assertRaises(Aborted), contextlib.redirect_stderr(io.StringIO()):
            call(context)
        return context.code

    def test_errors_have_the_status_of_the_contract(self):
        for error, code in {
            quorate_plugin.Undecided("x"): grpc.StatusCode.UNKNOWN,
            quorate_plugin.Malformed("x"): grpc.StatusCode.INVALID_ARGUMENT,
            quorate_plugin.OutOfStep("x"): grpc.StatusCode.FAILED_PRECONDITION,
            KeyError("x"): grpc.StatusCode.INTERNAL,
        }.items():
            made = plugin(error)
            self.assertEqual(self.status(lambda context: made.call("Ask", None, context)), code)
            self.assertEqual(self.status(lambda context: made.call("Ask", None, context)), code, "the slot is free again")

    def test_calls_before_and_configurations_after_configure_are_refused(self):
        bare = quorate_plugin.Plugin(plugin_pb2.POLICY_DISCOVERY, "tried", "1.0.0", lambda settings: Strategy(None))
        self.assertEqual(self.status(lambda c: bare.call("Ask", None, c)), grpc.StatusCode.FAILED_PRECONDITION)
        made = plugin()
        again = lambda c: made.configure(plugin_pb2.ConfigureRequest(), c)
        self.assertEqual(self.status(again), grpc.StatusCode.FAILED_PRECONDITION)

    def test_wrong_settings_can_be_corrected(self):
        made = quorate_plugin.Plugin(plugin_pb2.POLICY_DISCOVERY, "tried", "1.0.0", lambda settings: Strategy(None))
        answer = made.configure(plugin_pb2.ConfigureRequest(settings=b'{"a": 1}'), Context())
        self.assertEqual([e.key for e in answer.errors], ["a"])
        answer = made.configure(plugin_pb2.ConfigureRequest(settings=b"{}"), Context())
        self.assertFalse(answer.errors)

    def test_too_many_calls_are_refused_and_too_large_answers_too(self):
        go, begun = threading.Event(), threading.Semaphore(0)

        def slow():
            begun.release()
            go.wait()
            return plugin_pb2.RoleSet()

        made = plugin(slow)
        calls = [threading.Thread(target=made.call, args=("Ask", None, Context())) for _ in range(quorate_plugin.CALLS_MAX)]
        for call in calls:
            call.start()
            begun.acquire()
        self.assertEqual(self.status(lambda c: made.call("Ask", None, c)), grpc.StatusCode.RESOURCE_EXHAUSTED)
        go.set()
        for call in calls:
            call.join()
        large = plugin_pb2.RoleSet(role=["x" * quorate_plugin.ANSWER_BYTES_MAX])
        self.assertEqual(self.status(lambda c: plugin(large).call("Ask", None, c)), grpc.StatusCode.RESOURCE_EXHAUSTED)

    def test_settings_are_strict(self):
        settings = quorate_plugin.Settings(b'{"n": true, "f": 2, "s": 1, "l": [], "rest": 1}')
        self.assertEqual(settings.take("n", int, 7), 7)
        self.assertEqual(settings.take("f", float, 1.0), 2.0)
        self.assertEqual(settings.take("s", str, "d"), "d")
        self.assertEqual(settings.take("l", list, [1]), [])
        self.assertEqual(settings.take("missing", dict, {}), {})
        settings.close()
        self.assertEqual([key for key, _ in settings.faults], ["n", "s", "rest"])
        for text in b"{", b"[]", b'"a"', b"\xff":
            self.assertTrue(quorate_plugin.Settings(text).faults, text)
        self.assertFalse(quorate_plugin.Settings(b"").faults)

    def test_the_highest_version_in_common_is_taken(self):
        for offered, taken in {"1": 1, "3,1,2": 1, "2,3": 1, "": 1, "x,1": 1}.items():
            self.assertEqual(quorate_plugin.version_in_common(offered), taken)

    def test_texts_are_cut_to_lines(self):
        self.assertEqual(quorate_plugin.line("a\nb\x1b"), "a b ")
        self.assertEqual(quorate_plugin.line("ééé", 5), "éé")

    def test_records_of_the_log_are_lines_of_json(self):
        with contextlib.redirect_stderr(io.StringIO()) as printed:
            quorate_plugin.log("warn", "two\nlines", seconds=1.5)
        self.assertEqual(json.loads(printed.getvalue()), {"@level": "warn", "@message": "two\nlines", "seconds": 1.5})
        self.assertEqual(printed.getvalue().count("\n"), 1)

    def test_the_certificate_is_for_localhost(self):
        private, cert = quorate_plugin.certificate()
        self.assertIn(b"BEGIN PRIVATE KEY", private)
        names = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        self.assertEqual(names.get_values_for_type(x509.DNSName), ["localhost"])


if __name__ == "__main__":
    unittest.main()

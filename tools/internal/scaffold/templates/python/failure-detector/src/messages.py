"""Between the messages of the contract and the strategy, which sees plain objects."""

import threading

from quorate.plugin.v1 import failuredetector_pb2, plugin_pb2
from quorate_plugin import Malformed, OutOfStep, line

POLICY = plugin_pb2.POLICY_FAILURE_DETECTOR
CONTRACT = failuredetector_pb2.DESCRIPTOR.services_by_name["FailureDetector"]


class Service:
    """Answers the call of the service FailureDetector by a strategy.

    It is the one call with a memory: a detector for each node, which the strategy makes.
    """

    def __init__(self, strategy):
        self._strategy = strategy
        self._lock = threading.Lock()
        self._number = 0  # Of the last batch.
        self._now = 0.0  # The moment of the last batch, in seconds, on a clock of its own.
        self._detectors = {}
        self._kept = 0, ()  # The last nodes that had a number, with that number.

    def judge(self, request):
        """Answer FailureDetector.Judge."""
        with self._lock:
            nodes = self._nodes(request)
            answer = self._answer(request, nodes)
            if request.nodes_number:
                self._kept = request.nodes_number, nodes
                answer.kept = request.nodes_number
            return answer

    def _nodes(self, request):
        """Return the nodes of a batch, which leaves them out where they were kept."""
        if request.node or not request.nodes_number:
            return list(request.node)
        number, nodes = self._kept
        if number != request.nodes_number:
            raise OutOfStep(f"nodes {request.nodes_number} are not kept here")
        return nodes

    def _answer(self, request, nodes):
        n = len(nodes)
        if not n == len(request.available) == len(request.answer_count) or sum(request.answer_count) != len(request.age_nanos):
            raise Malformed("node: columns of different lengths")
        if request.number == 1:
            self._detectors, self._now = {}, 0.0
        elif self._number == 0 or request.number != self._number + 1:
            raise OutOfStep(f"number {request.number} after {self._number}")
        self._number = request.number
        self._now += request.elapsed_nanos / 1e9
        return self._verdicts(request, nodes)

    def _verdicts(self, request, nodes):
        answer, reasons, first, known = failuredetector_pb2.JudgeResponse(number=request.number), {}, 0, self._detectors
        self._detectors = {}  # Nodes that the batch does not name are forgotten.
        for place, node in enumerate(nodes):
            detector = known.get(node) or self._strategy.detector()
            self._detectors[node] = detector
            behind = first + request.answer_count[place]
            for age in request.age_nanos[first:behind]:
                detector.answered(self._now - age / 1e9)
            first = behind
            available, reason = detector.available(self._now)
            if available != request.available[place]:
                answer.node.append(place)
                answer.reason.append(reasons.setdefault(line(reason), len(reasons)))
        answer.reasons.extend(reasons)
        return answer

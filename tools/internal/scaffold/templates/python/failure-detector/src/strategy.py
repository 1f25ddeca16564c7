"""The strategy: whether nodes are believed alive. This is the file to change."""

import collections


class Strategy:
    """Suspects a node after a multiple of the longest silence that it was seen to keep."""

    CLASS = {"pure": True}

    # What a node checks the settings by before the plugin gets them, and shows of them.
    SCHEMA = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "factor": {
                "type": "number", "minimum": 1, "maximum": 100, "default": 3,
                "description": "A node is suspected after this many times its longest silence.",
            },
            "samples": {
                "type": "integer", "minimum": 1, "maximum": 10000, "default": 100,
                "description": "How many silences are remembered of each node.",
            },
        },
    }

    def __init__(self, settings):
        """Take the settings. Whatever is not taken here is refused."""
        self.factor = settings.take("factor", float, 3.0)
        self.samples = settings.take("samples", int, 100)
        if not 1 <= self.factor <= 100:
            settings.wrong("factor", f"{self.factor:g} is not from 1 to 100")
        if not 1 <= self.samples <= 10000:
            settings.wrong("samples", f"{self.samples} is not from 1 to 10000")

    def detector(self):
        """Return what judges one node."""
        return Detector(self.factor, max(1, self.samples))


class Detector:
    """Judges one node by the times at which it answered, in seconds."""

    def __init__(self, factor, samples):
        self.factor = factor
        self.silences = collections.deque(maxlen=samples)
        self.last = None

    def answered(self, at):
        """Learn of an answer. Answers come in order."""
        if self.last is not None and at >= self.last and self.available(at)[0]:  # An outage is nothing to learn from.
            self.silences.append(at - self.last)
        self.last = at if self.last is None else max(at, self.last)

    def available(self, now):
        """Return whether the node is believed alive, and why."""
        if self.last is None:
            return True, "it has never answered"
        limit = self.factor * max([1.0, *self.silences])
        silence = now - self.last
        return silence < limit, f"silent for {silence:.1f} s, {limit:.1f} s are tolerated"

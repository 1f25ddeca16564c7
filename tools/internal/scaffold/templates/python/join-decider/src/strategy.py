"""The strategy: what a node without a cluster does next. This is the file to change."""

from messages import FORM, JOIN, PROBE, Decision, order


class Strategy:
    """Joins the cluster that goes on; else the node with the lowest address forms one.

    Equal observations must get equal decisions, and of the nodes that observe the same at
    most one may form a cluster.
    """

    CLASS = {"pure": True}

    # What a node checks the settings by before the plugin gets them, and shows of them.
    SCHEMA = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "form": {"type": "boolean", "default": True, "description": "Whether a cluster may be formed at all."},
        },
    }

    def __init__(self, settings):
        """Take the settings. Whatever is not taken here is refused."""
        self.form = settings.take("form", bool, True)

    def decide(self, o):
        """Return a Decision about Observations."""
        if o.seeds:
            return Decision(JOIN, f"{o.seeds[0]} is in a cluster that goes on", list(range(len(o.seeds))))
        answering = o.answering
        if not self.form:
            return Decision(PROBE, "the settings say that no cluster is formed here")
        if not answering or len(answering) < o.required:
            return Decision(PROBE, f"{len(answering)} contact points answer, {o.required} are required")
        if o.stable < o.margin:
            return Decision(PROBE, f"the contact points have not been unchanged for {o.margin:g} s")
        lowest = min((p.address for p in answering), key=order)
        if lowest != o.self:
            return Decision(PROBE, f"{lowest} has a lower address, and forms the cluster")
        return Decision(FORM, f"{o.self} has the lowest address of {len(answering)}")

"""The strategy: where the nodes of a service are. This is the file to change."""

from messages import Target


class Strategy:
    """Gives the contact points that the settings list."""

    CLASS = {}  # The source of a real one may change, so nothing is promised.

    # What a node checks the settings by before the plugin gets them, and shows of them.
    SCHEMA = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "targets": {
                "type": "array", "items": {"type": "string"}, "default": ["127.0.0.1:7946"],
                "description": "The contact points, each host:port.",
            },
        },
    }

    def __init__(self, settings):
        """Take the settings. Whatever is not taken here is refused."""
        self.targets = []
        for text in settings.take("targets", list, ["127.0.0.1:7946"]):
            try:
                self.targets.append(Target.parse(text))
            except (ValueError, AttributeError) as err:
                settings.wrong("targets", str(err))

    def lookup(self, service, port, protocol):
        """Return the targets, where they come from, and for how many seconds they hold.

        Raise quorate_plugin.Undecided when the source cannot be asked: that there are no
        targets is an answer, that nobody knows is none.
        """
        return self.targets, f"listed in the settings for {service or 'any service'}"[:1024], 0

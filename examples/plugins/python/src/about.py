"""What the plugin says about itself."""

NAME = "labels"
VERSION = "0.1.0"  # Raise it with each change of what the strategy decides.

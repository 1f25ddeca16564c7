"""The program of the plugin. The strategy is in strategy.py."""

import about
import messages
import quorate_plugin
from strategy import Strategy

quorate_plugin.serve(
    messages.POLICY, messages.CONTRACT, about.NAME, about.VERSION,
    lambda settings: messages.Service(Strategy(settings)), Strategy.SCHEMA, **Strategy.CLASS,
)

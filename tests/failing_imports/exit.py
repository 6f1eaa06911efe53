"""Raises while it is imported."""

import failing_flows

failing_flows.raise_what("exit")

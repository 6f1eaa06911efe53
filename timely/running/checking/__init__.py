"""Checks of a running worker: rows pass nothing here unless progress is checked."""

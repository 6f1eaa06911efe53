"""Modules that cannot be imported, each for another reason."""

"""Whole dataflows, each measured beside the same work in other systems."""

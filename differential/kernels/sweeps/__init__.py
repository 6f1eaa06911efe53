"""Kernels for answers along a time within groups, and for the parts of groups that a change can affect."""

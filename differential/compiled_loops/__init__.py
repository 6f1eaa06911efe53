"""Loops that run compiled: how a loop of built-in operators becomes tables for one kernel."""

"""Expressions over columns: written, checked, printed, compiled, evaluated."""

"""Operators that look at epochs, or at a column of times: what is there when, what comes too late, inputs
that keep the last value.
"""

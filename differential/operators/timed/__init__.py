"""Operators that look at epochs, or at a column of times: rows with a first and last epoch, late rows, inputs
that keep the last value.
"""

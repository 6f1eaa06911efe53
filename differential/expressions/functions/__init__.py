"""Functions over columns: one catalogue, a file per family.

Typing, printing, evaluation and the Python functions and methods all read it.
"""

"""Functions over columns: one table, a file per family; who types, prints, sends or evaluates them reads
it.
"""

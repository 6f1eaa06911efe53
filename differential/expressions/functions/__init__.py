"""Functions over columns: one catalogue, a file per family; who types, prints, sends or evaluates them reads
it.
"""

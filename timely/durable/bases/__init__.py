"""Bases: what inputs hold as of an epoch, as Parquet, so that a restart does not read their whole history.

facts         how a dataflow is folded, as its query says
manifest      what a base has, and the files in which it is
coverage      which segments of logs a base stands for
names         names of deliveries, as intervals
rows_form     rows of one input during a fold
raw_rows      batches that are kept as they were logged
files         files of a base, and whether they are as they were written
cuts          where the logs of a running cluster are cut for a fold
history       what the logs say that a fold stands for
folding       the next base of a store: the one before, and the logs
pruning       what no base needs is removed
"""

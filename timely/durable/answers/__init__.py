"""Stored answers: what outputs hold as of an epoch, as Parquet, for readers that ask no cluster.

manifest   what is stored of an output, and the files in which it is
logged     which answers the logs have
writing    a fold stores the answers that the logs have
reading    `timely.durable.stored`: where the newest answer of an output is
old        what readers do not need any more is removed

Workers write the rows of an answer into their logs, in front of the cut for a fold
(`timely/worker/durability/folds/cuts.py`). So an answer has all rows of its epoch or is not there, whatever
is killed meanwhile.
"""

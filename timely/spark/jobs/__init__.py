"""One call from DataFrames to DataFrames: `timely.spark.run(query, inputs={name: DataFrame})`.

Read in this order:

    run.py            what the call means, and what it starts and ends
    querying.py       from the user's query to a dataflow; its inputs' and outputs' columns
    columns.py        a DataFrame's columns as those of an input, and an answer's as those of a DataFrame
    calendar.py       which epochs there are: one, the values of a column, the steps of a window
    spans.py          sliding, tumbling, growing windows over a column of times
    feeding.py        the rows of all inputs, laid out by epoch, and sent
    following.py      epoch after epoch: sealed, answered, handed on; shown.py: the line on the screen
    outputs.py        what `outputs=` may say
    sinks.py          folders and tables, and what is kept for the caller
    micro_batches.py  the epochs of a stream
    result.py         what the call returns

Nothing here imports `differential`: the two functions that are needed of it are named, and loaded by their
names as workers load builders (`querying.py`).
"""

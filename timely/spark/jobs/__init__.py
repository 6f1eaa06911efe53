"""One call from DataFrames to DataFrames: `timely.spark.run(query, inputs={name: DataFrame})`.

Read the files in this order:

    run.py            the call: its arguments, the processes that it starts and ends
    querying.py       from the user's query to a dataflow; its inputs' and outputs' columns
    columns.py        a DataFrame's columns as those of an input, and an answer's as those of a DataFrame
    calendar.py       the epochs: a single one, the values of a column, or the steps of a window
    spans.py          sliding, tumbling, growing windows over a column of times
    feeding.py        the rows of all inputs, laid out by epoch, and sent
    following.py      epoch after epoch: sealed, answered, handed on; shown.py: the line on the screen
    outputs.py        the values of `outputs=`
    sinks.py          folders, tables and the driver's memory, which take the answers
    micro_batches.py  the epochs of a stream
    result.py         the result of the call

Nothing here imports `differential`: `querying.py` loads the functions that it needs of it by their names, as
workers load builders.
"""

"""Queries in Spark's own words: a SQL text, or a function of DataFrames, becomes a query of collections.

Read the files in this order:

    marking.py     `timely.spark.dataframes`, which marks a function of DataFrames
    stand_ins.py   DataFrames without rows in place of the inputs, also under their names as views
    left_out.py    what Spark's JSON of a plan leaves out, asked of the plan itself
    analysed.py    the analysed plan of a DataFrame, with inputs and constant rows as its leaves
    sites.py       where an expression stands in the user's program or text
    planned.py     all of it: from a text or a marked function to a function of collections
"""

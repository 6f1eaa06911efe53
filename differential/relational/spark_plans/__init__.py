"""Plans that Spark has analysed, as relations: another front end of the algebra. It needs no Spark.

Read the files in this order:

    plan_nodes.py    the tree of a plan, from what Spark writes of it
    plan_types.py    Spark's types and constants as ours
    plan_scopes.py   which columns an expression may name, and what waits to be applied to a relation
    casts.py         casts, as Spark's ANSI rules have them
    spark_times.py   times in zones, formats and intervals
    plan_expressions.py                  expressions, subqueries in them included
    plan_aggregates.py, plan_windows.py  aggregates and window functions
    plan_relations.py, plan_leaves.py    the nodes of a plan
    plan_door.py     a plan over collections becomes a collection

Functions of rows are in `spark_functions`, which SQL texts have, too.

A node, an expression, or a part of one that these files do not name is refused by its name.
"""

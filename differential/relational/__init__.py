"""SQL over collections: a text becomes a small relational algebra, and the algebra becomes collections.

    spark_plans Spark's analysed plan → the same relations; needs no Spark
    reading     SQL text → relations: names, types, the places where aggregates may stand; needs sqlglot
    algebra     the relations: scans, filters, joins, subqueries, groups, windows; knows no parser
    lowering    relations → collections: subqueries become joins, joins get an order
    door.py     `dd.sql`

Read `algebra/relations.py` first. Another front end builds the same relations, and calls the same lowering.
"""

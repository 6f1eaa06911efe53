"""Types and columns as others declare them: Arrow, Spark, Polars, pandas, SQL. None of them is imported but
Arrow.
"""

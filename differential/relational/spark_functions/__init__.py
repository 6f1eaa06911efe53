"""The functions of rows by Spark's names, for its plans, for SQL texts, and for `differential.functions`.

by_class.py   which function of ours each class of Spark's expressions is
by_name.py    which of these classes, or which function of ours, each name stands for
formats.py    formats of dates, and operands of which SQL has another order
"""

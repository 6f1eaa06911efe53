"""Second spellings of functions of the module: `dd.countDistinct` is `dd.count_distinct`.

For editors and mypy alone; when a program runs, the table answers. `./scripts/stubs` writes it.
"""

from differential.aggregates import all_of as bool_and
from differential.aggregates import all_of as every
from differential.aggregates import any_of as bool_or
from differential.aggregates import any_of as some
from differential.aggregates import argmax as max_by
from differential.aggregates import argmin as min_by
from differential.aggregates import avg as mean
from differential.aggregates import collect as array_agg
from differential.aggregates import collect as collect_list
from differential.aggregates import count as len
from differential.aggregates import count_distinct as countDistinct
from differential.aggregates import count_if as countIf
from differential.aggregates import stddev as std
from differential.aggregates import stddev as stddev_samp
from differential.aggregates import variance as var
from differential.aggregates import variance as var_samp
from differential.expressions.calls.catalogued import acos as arccos
from differential.expressions.calls.catalogued import asin as arcsin
from differential.expressions.calls.catalogued import atan as arctan
from differential.expressions.calls.catalogued import atan2 as arctan2
from differential.expressions.calls.catalogued import bitwise_not as bitwiseNOT
from differential.expressions.calls.catalogued import ceil as ceiling
from differential.expressions.calls.catalogued import chr as char
from differential.expressions.calls.catalogued import date_add as dateadd
from differential.expressions.calls.catalogued import degrees as toDegrees
from differential.expressions.calls.catalogued import length as char_length
from differential.expressions.calls.catalogued import length as character_length
from differential.expressions.calls.catalogued import log as ln
from differential.expressions.calls.catalogued import lower as lcase
from differential.expressions.calls.catalogued import power as pow
from differential.expressions.calls.catalogued import radians as toRadians
from differential.expressions.calls.catalogued import rlike as regexp
from differential.expressions.calls.catalogued import rlike as regexp_like
from differential.expressions.calls.catalogued import sha1 as sha
from differential.expressions.calls.catalogued import shiftleft as shiftLeft
from differential.expressions.calls.catalogued import shiftright as shiftRight
from differential.expressions.calls.catalogued import shiftrightunsigned as shiftRightUnsigned
from differential.expressions.calls.catalogued import signum as sign
from differential.expressions.calls.catalogued import size as array_size
from differential.expressions.calls.catalogued import size as cardinality
from differential.expressions.calls.catalogued import upper as ucase
from differential.expressions.calls.composed import date_part as datepart
from differential.expressions.calls.composed import substring as substr
from differential.expressions.calls.composed import unix_timestamp as to_unix_timestamp
from differential.expressions.expression import coalesce as ifnull
from differential.expressions.expression import coalesce as nvl
from differential.expressions.expression import col as column
from differential.expressions.expression import greatest as max_horizontal
from differential.expressions.expression import least as min_horizontal
from differential.group_statistics import approx_count_distinct as approxCountDistinct
from differential.group_statistics import approx_count_distinct as approx_n_unique
from differential.group_statistics import percentile as percentile_cont
from differential.group_statistics import string_agg as listagg
from differential.group_statistics import string_agg as str_join
from differential.group_statistics import sum_distinct as sumDistinct
from differential.spelled import asc as asc
from differential.spelled import asc_nulls_first as asc_nulls_first
from differential.spelled import asc_nulls_last as asc_nulls_last
from differential.spelled import date_sub as date_sub
from differential.spelled import desc as desc
from differential.spelled import desc_nulls_first as desc_nulls_first
from differential.spelled import desc_nulls_last as desc_nulls_last
from differential.spelled import ilike as ilike
from differential.spelled import isnotnull as isnotnull
from differential.spelled import negate as negate
from differential.spelled import negate as negative
from differential.spelled import percentile_approx as approx_percentile
from differential.spelled import percentile_approx as percentile_approx
from differential.spelled import stddev_pop as stddev_pop
from differential.spelled import string_agg_distinct as listagg_distinct
from differential.spelled import string_agg_distinct as string_agg_distinct
from differential.spelled import var_pop as var_pop

__all__ = [
    "approxCountDistinct",
    "approx_n_unique",
    "approx_percentile",
    "arccos",
    "arcsin",
    "arctan",
    "arctan2",
    "array_agg",
    "array_size",
    "asc",
    "asc_nulls_first",
    "asc_nulls_last",
    "bitwiseNOT",
    "bool_and",
    "bool_or",
    "cardinality",
    "ceiling",
    "char",
    "char_length",
    "character_length",
    "collect_list",
    "column",
    "countDistinct",
    "countIf",
    "date_sub",
    "dateadd",
    "datepart",
    "desc",
    "desc_nulls_first",
    "desc_nulls_last",
    "every",
    "ifnull",
    "ilike",
    "isnotnull",
    "lcase",
    "len",
    "listagg",
    "listagg_distinct",
    "ln",
    "max_by",
    "max_horizontal",
    "mean",
    "min_by",
    "min_horizontal",
    "negate",
    "negative",
    "nvl",
    "percentile_approx",
    "percentile_cont",
    "pow",
    "regexp",
    "regexp_like",
    "sha",
    "shiftLeft",
    "shiftRight",
    "shiftRightUnsigned",
    "sign",
    "some",
    "std",
    "stddev_pop",
    "stddev_samp",
    "str_join",
    "string_agg_distinct",
    "substr",
    "sumDistinct",
    "toDegrees",
    "toRadians",
    "to_unix_timestamp",
    "ucase",
    "var",
    "var_pop",
    "var_samp",
]

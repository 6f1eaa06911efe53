"""Statements of SQL against a cluster: tables and views that all clients see, and queries.

scripts      a text → its statements, each with its place in the text
parameters   values in place of :name
catalogue    the tables and views that there are: derived from the dataflows that run
tables       CREATE TABLE, and the rows that INSERT writes out
steps        what statements do, as data
planning     statements → steps; nothing has changed until all of a script have been read
reads        queries that run for one answer, and those that are followed
writing      INSERT, DELETE, UPDATE
session      carries steps out
"""

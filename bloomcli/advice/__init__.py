"""`advise`: estimates figures of all columns of many files, reads queries, and recommends filters within a budget.

`measure` measures the columns; `recommend` decides which get filters.
"""

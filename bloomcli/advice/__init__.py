"""`advise` on many files: the estimates over all of them, the queries, the budget, and the recommendation.

`measure` measures; `recommend` decides.
"""

"""Analyses SQL statements: the tables that they read, and the values that they look up."""

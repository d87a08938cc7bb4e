"""Reads SQL statements: which tables they read, and which values they look up."""

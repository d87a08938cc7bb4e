"""Conversion between text and a column's physical values."""

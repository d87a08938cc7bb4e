"""Parquet files, and files with a single Parquet filter."""

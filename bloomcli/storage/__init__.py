"""Bytes, wherever they lie: read ranges, list files, replace a file."""

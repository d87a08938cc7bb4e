"""Bloom filters in memory: bits, false-positive rates, sizes and hashes."""

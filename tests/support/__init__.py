"""Helpers of several tests: tables of every type, decoding and encoding of footers, engines."""

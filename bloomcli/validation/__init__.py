"""Validation of many files against a policy and a baseline."""

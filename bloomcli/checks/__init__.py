"""Checks filters against a policy: each module checks an open file's filters and yields findings."""

"""Checks filters against a policy and readers: each module checks an open file's filters and yields findings."""

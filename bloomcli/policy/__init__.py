"""Policies: a team's requirements for the filters of its files (bloom.toml), and table schemas."""

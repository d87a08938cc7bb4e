"""What a team asks of its files: bloom.toml, its keys, and the schema of a table."""

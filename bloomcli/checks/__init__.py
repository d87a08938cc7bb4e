"""What a policy asks of filters: each module looks at an open file's filters and yields findings."""

"""Threads, signals, pipes, and the cancellation of work in other threads."""

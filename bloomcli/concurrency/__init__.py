"""Threads, signals, and the cancellation of work in other threads."""

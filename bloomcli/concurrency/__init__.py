"""Threads, signals, and how work in other threads is told to end."""

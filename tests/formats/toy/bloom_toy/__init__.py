"""Toy files, a format for bloom's own tests that another package adds: see `bloom_toy.spec`."""

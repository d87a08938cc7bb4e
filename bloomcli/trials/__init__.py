"""Lookups by installed readers, with the filters of a file and without them: `trial`.

    values of a column -> lookups -> a process for each reader -> rows, metrics, times -> report

Each reader runs in a process of its own (`process`, `child`), so that one that crashes or hangs is a row of the
report. `readers` has a module for each of them, behind one interface.
"""

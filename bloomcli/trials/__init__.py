"""`trial`: lookups by installed readers, with a file's filters and without them.

    values of a column -> lookups -> a process for each reader -> rows, metrics, times -> report

Each reader runs in its own process (`process`), so that a crash or a hang becomes a row of the report.
`readers` has one module per reader, all with the same interface.
"""

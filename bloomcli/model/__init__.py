"""The reports that commands return: frozen dataclasses, without behaviour beyond derived figures.

`inspect`, `probe`, `change` and `validate` contain the reports on one file, `dataset` the reports on many files, and
`gate` the report of `validate` on many files.
"""

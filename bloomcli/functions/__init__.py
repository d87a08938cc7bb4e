"""The public functions of the package, one file each: arguments in, the report on one file or many files out."""

from bloomcli.report import show_in_notebooks

show_in_notebooks()

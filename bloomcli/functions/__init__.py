"""The public functions of the package, one file each: arguments in, the report on one file or many files out."""

from bloomcli.report.notebook import show_reports

show_reports()

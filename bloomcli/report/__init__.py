"""Reports into text, JSON, CSV, JUnit XML, SARIF and GitHub annotations. Nothing here decides anything.

``text`` lays the dataclasses of :mod:`bloomcli.model.file` out as blocks (:mod:`.layout`), which ``render`` prints:
with rich on a terminal, plainly otherwise. ``json`` and ``csv`` are for programs; ``json`` is documented,
field by field, from the dataclasses' own docstrings (:mod:`.schema`). ``junit``, ``sarif`` and ``github`` are
what CI services show of `validate`; the words that they share with the text are in :mod:`.verdict`.
"""

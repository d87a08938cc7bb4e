"""Reports into text, JSON and CSV. Nothing here reads a file or decides anything.

``text`` lays the dataclasses of :mod:`bloomcli.model` out as blocks (:mod:`.layout`), which ``render`` prints:
with rich on a terminal, plainly otherwise. ``json`` and ``csv`` are for programs; ``json`` is documented,
field by field, from the dataclasses' own docstrings (:mod:`.schema`).
"""

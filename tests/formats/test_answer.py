"""Only `answer` decides the answer for a value, by the table in its documentation."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bloomcli
from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats import answer
from bloomcli.formats.answer import Answer, Contents, Lookup, UnitFacts
from bloomcli.model.file import Presence

FORMATS = Path(bloomcli.__file__).parent / "formats"
HASH = 0x0123456789ABCDEF


class Case(NamedTuple):
    """One combination of facts."""

    fault: bool
    impossible: bool
    encrypted: bool
    contents: Contents
    filter: str
    """``none``, ``broken``, ``without`` the value or ``with`` it."""
    unknowable: bool
    skip: bool | None
    explain: bool

    @property
    def askable(self) -> bool:
        """Whether a filter can be used for the value."""
        return self.filter.startswith("with") and not self.unknowable


CASES = [
    Case(*values)
    for values in itertools.product(
        (False, True),
        (False, True),
        (False, True),
        Contents,
        ("none", "broken", "without", "with"),
        (False, True),
        (None, False, True),
        (False, True),
    )
]


def holding(*hashes: int) -> SplitBlockFilter:
    bits = SplitBlockFilter.empty(32)
    for value in hashes:
        bits.insert(value)
    return bits


def decided(case: Case) -> Answer:
    bits = {"without": holding(), "with": holding(HASH)}.get(case.filter)
    facts = UnitFacts(
        row_group=0,
        rows=1,
        chunk_bytes=1,
        row_group_bytes=1,
        contents=case.contents,
        type_fault="fault" if case.fault else None,
        encrypted=case.encrypted,
        bits=bits,
        problem="broken" if case.filter == "broken" else None,
    )
    lookup = Lookup(
        "impossible" if case.impossible else None,
        "unknowable" if case.unknowable else None,
        () if case.impossible or case.unknowable else (b"value",),
        () if case.impossible or case.unknowable else (HASH,),
        without_filter="said",
    )
    return answer.answer(facts, lookup, case.skip, explain=case.explain)


def row_of(case: Case) -> int:
    """The row of the table that decides, counted from 1: the first that holds."""
    nulls = case.contents is Contents.ONLY_NULLS
    rows = (
        case.fault,
        case.impossible,
        case.encrypted,
        case.contents is Contents.NOTHING,
        nulls and not case.askable,
        case.filter == "none",
        case.unknowable,
        case.filter == "broken",
        case.filter == "without",
        True,
    )
    return rows.index(True) + 1


def expected(case: Case) -> tuple[Presence, bool | None, str | None]:
    """(presence, whether statistics exclude the value, reason)."""
    nulls = case.contents is Contents.ONLY_NULLS
    skip = True if nulls else case.skip
    missing = Presence.NO_FILTER if case.filter == "none" else Presence.UNKNOWN
    absent = Presence.NO_FILTER if case.filter == "none" else Presence.ABSENT
    return {
        1: (missing, None, "fault"),
        2: (absent, case.skip, "impossible"),
        3: (Presence.UNKNOWN, None, "the column is encrypted"),
        4: (absent, True, "no values"),
        5: (absent, True, "only nulls"),
        6: (Presence.NO_FILTER, case.skip, "said"),
        7: (Presence.UNKNOWN, case.skip, "unknowable"),
        8: (Presence.UNKNOWN, case.skip, "broken"),
        9: (Presence.ABSENT, skip, "only nulls" if nulls else None),
        10: (Presence.MAYBE, skip, "the statistics count only nulls" if nulls else None),
    }[row_of(case)]


def test_every_combination_of_facts_is_decided_by_the_first_row_that_holds() -> None:
    assert len(CASES) == 2**3 * 3 * 4 * 2 * 3 * 2
    assert {row_of(case) for case in CASES} == set(range(1, 11))
    for case in CASES:
        found = decided(case)
        assert (found.presence, found.stats_skip, found.reason) == expected(case), case
        trail = case.explain and row_of(case) > 8
        assert [t.hashed for t in found.trail] == ([b"value"] if trail else []), case


def test_filter_and_statistics_together_say_absent_where_either_does_and_the_filter_does_not_contradict_them() -> (
    None
):
    for case in CASES:
        found = decided(case)
        nulls_with_value = row_of(case) == 10 and case.contents is Contents.ONLY_NULLS
        excluded = found.stats_skip is True and not nulls_with_value
        absent = excluded or found.presence is Presence.ABSENT or row_of(case) == 2
        assert found.together is (Presence.ABSENT if absent else found.presence), case


def test_statistics_that_the_filter_contradicts_exclude_nothing() -> None:
    facts = UnitFacts(row_group=0, rows=1, chunk_bytes=1, row_group_bytes=1, problem=answer.WRONG)
    for unknowable in (None, "NaN"):
        found = answer.answer(facts, Lookup(None, unknowable, (b"v",), (HASH,)), True, explain=False)
        assert (found.presence, found.stats_skip, found.together) == (Presence.UNKNOWN, True, Presence.UNKNOWN)
    other = answer.answer(facts._replace(problem="torn"), Lookup(None, None, (b"v",), (HASH,)), True, explain=False)
    assert (other.presence, other.together) == (Presence.UNKNOWN, Presence.ABSENT)


def test_the_documentation_has_the_table_that_is_tested() -> None:
    rows = re.findall(r"^    (\d+)\. .*?  +(\S.*?)  +(\S.*)$", answer.__doc__ or "", re.MULTILINE)
    assert [int(number) for number, _, _ in rows] == list(range(1, 11))
    for number, presences, reasons in rows:
        cases = [case for case in CASES if row_of(case) == int(number)]
        assert {decided(case).presence for case in cases} == {Presence(p) for p in presences.split(", ")}
        found = {decided(case).reason for case in cases}
        if int(number) in {3, 4, 5, 9, 10}:  # these say their own, the others what the format gives
            assert found == {None if text == "-" else text for text in reasons.split(", ")}
        else:
            assert found & {"fault", "impossible", "said", "unknowable", "broken"}
            assert len(found) == 1


def test_a_value_with_several_forms_may_be_there_if_the_filter_has_one_of_them() -> None:
    facts = UnitFacts(row_group=0, rows=1, chunk_bytes=1, row_group_bytes=1, bits=holding(7))
    for hashes, presence in (((5, 7), Presence.MAYBE), ((7, 5), Presence.MAYBE), ((5, 6), Presence.ABSENT)):
        lookup = Lookup(None, None, (b"+", b"-"), hashes)
        found = answer.answer(facts, lookup, None, explain=True)
        assert found.presence is presence
        assert [(t.hashed, t.hash) for t in found.trail] == list(zip((b"+", b"-"), hashes, strict=True))
        assert any(all(t.present) for t in found.trail) == (presence is Presence.MAYBE)


HASHES = st.integers(0, 2**64 - 1)


@given(
    st.lists(HASHES, max_size=20),
    st.lists(st.tuples(st.lists(HASHES, max_size=2), st.sampled_from(("", "impossible", "unknowable"))), min_size=8),
    st.sampled_from(("none", "broken", "split-block", "Kirsch-Mitzenmacher")),
    st.sampled_from(Contents),
    st.booleans(),
    st.data(),
)
def test_many_values_get_the_answers_that_each_gets_alone(
    there: list[int],
    wanted: list[tuple[list[int], str]],
    kind: str,
    contents: Contents,
    faulty: bool,
    data: st.DataObject,
) -> None:
    bits: Any = {
        "split-block": SplitBlockFilter.empty(64),
        "Kirsch-Mitzenmacher": KirschMitzenmacherFilter.empty(64, 3),
    }.get(kind)
    for value in there if bits is not None else ():
        bits.insert_hashes(value.to_bytes(8, "little"), 1)
    lookups = []
    for hashes, why in wanted:
        known = [data.draw(st.sampled_from(there)) if there and value % 2 else value for value in hashes]
        forms = tuple(value.to_bytes(8, "little") for value in known)
        lookups.append(
            Lookup(why if why == "impossible" else None, why if why == "unknowable" else None, forms, tuple(known))
        )
    facts = UnitFacts(
        row_group=0,
        rows=1,
        chunk_bytes=1,
        row_group_bytes=1,
        contents=contents,
        type_fault="fault" if faulty else None,
        bits=bits,
        problem="broken" if kind == "broken" else None,
        lookups=lookups,
        stats_skip=data.draw(
            st.lists(st.sampled_from((None, False, True)), min_size=len(lookups), max_size=len(lookups))
        ),
        dictionary_excludes=lambda lookup: bool(lookup.hashes[0] % 3) or None,
    )
    (together,) = answer.answers([facts], explain=False)
    assert together.answers == answer.one_by_one(facts, explain=False)
    assert together.possible() == {at for at, found in enumerate(together.answers) if not found.excludes}


def imports_in(path: Path) -> Iterator[str]:
    """Dotted names that a module imports, and those that it reaches through a module of ours."""
    tree = ast.parse(path.read_text())
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield f"{modules[node.value.id]}.{node.attr}"


@pytest.mark.slow
def test_only_the_module_that_decides_makes_answers() -> None:
    """A format that has neither `Answer` nor `Presence` can't call a value absent."""
    decisive = {"bloomcli.formats.answer.Answer", "bloomcli.model.file.Presence"}
    others = [path for path in FORMATS.rglob("*.py") if path.name != "answer.py"]
    assert len(others) > 60
    for path in others:
        found = set(imports_in(path))
        assert not found & decisive, path
        assert not found & {"bloomcli.model.file", "bloomcli.formats.answer.answer"}, path
    deciding = ast.parse((FORMATS / "answer.py").read_text())
    absent = [n for n in ast.walk(deciding) if isinstance(n, ast.Attribute) and n.attr == "ABSENT"]
    names = {"answer", "together", "excludes", "_with_dictionary", "_at_once", "possible"}
    within = [n for n in ast.walk(deciding) if isinstance(n, ast.FunctionDef) and n.name in names]
    assert len(within) == 6
    assert all(any(f.lineno < n.lineno <= (f.end_lineno or 0) for f in within) for n in absent)
    assert len(absent) == 7

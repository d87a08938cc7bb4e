"""Rows that wait, and values as Arrow arrays."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bloomcli.commands.value_frames import texts_of
from bloomcli.finding import spool
from bloomcli.finding.spool import Spool
from bloomcli.finding.value_file import lines_of


def batch(number: int) -> pa.RecordBatch:
    """Ten rows."""
    return pa.record_batch({"n": [number] * 10, "record": [{"a": None, "b": [number]}] * 10})


@pytest.mark.parametrize("most", [1 << 20, 500, 1])
def test_rows_come_back_in_order_from_memory_and_from_a_file(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_MEMORY_BYTES", most)
    waiting = Spool()
    for number in range(20):
        waiting.add(batch(number))
    assert [found.to_pylist() for found in waiting.batches()] == [batch(n).to_pylist() for n in range(20)]
    assert list(Spool().batches()) == []


def test_lines_have_no_mark_no_carriage_return_and_are_not_blank() -> None:
    assert lines_of(b"5\r\n\n  \nlast").to_pylist() == [b"5", b"  ", b"last"]
    assert lines_of(b"a\nb\n").to_pylist() == [b"a", b"b"]
    assert lines_of(b"\xff\n").to_pylist() == [b"\xff"], "bytes that aren't UTF-8 are kept"
    assert lines_of(b"").to_pylist() == []


def test_values_are_texts_of_python_or_arrays() -> None:
    assert texts_of([1, "x", 2.5]).to_pylist() == [b"1", b"x", b"2.5"]
    assert texts_of(7).to_pylist() == [b"7"]
    assert texts_of(pa.array([3, None, -4])).to_pylist() == [b"3", b"-4"]
    assert texts_of(pa.chunked_array([["a"], ["b"]])).to_pylist() == [b"a", b"b"]
    assert texts_of(pa.array([2.5])).to_pylist() == [b"2.5"]
    assert texts_of([b"x"]).to_pylist() == [b"x"]

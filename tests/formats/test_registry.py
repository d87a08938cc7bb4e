"""The format of a file: a magic at its end decides, unless the file can't be opened and starts with a longer one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bloomcli.errors import BloomError, CorruptFile, UnknownFormat, UsageError
from bloomcli.formats.add_options import checked_options, for_old_readers, recorded_choices
from bloomcli.formats.registry import has_magic, known_suffix, open_file
from bloomcli.storage.registry import open_source

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"PAR1" + bytes(60), "a Parquet file that was cut off"),
        (b"PAR1" + bytes(60) + b"ORC\x10", "a Parquet file that was cut off"),
        (b"ORC" + bytes(60) + b"PAR1", "the structure runs past its end"),
        (b"ORC" + bytes(60), "postscript"),
        (b"OR", "no Mosaic, ORC or Parquet file: no b'MOSA' at its end, no b'ORC', b'PAR1' or b'PARE' at its start"),
        (b"", "the file is empty"),
    ],
)
def test_the_magic_decides_what_a_damaged_file_is_taken_for(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(data)
    with open_source(path) as source, pytest.raises(BloomError) as caught:
        open_file(source)
    assert words.lower() in str(caught.value).lower()
    assert isinstance(caught.value, (CorruptFile, UnknownFormat))


@pytest.mark.parametrize(
    ("data", "known"),
    [
        (b"PAR1...", True),
        (b"...PARE", True),
        (b"ORC...", True),
        (b"..ORC.", True),
        (b"..MOSA", True),
        (b"MOSA..", False),
    ],
)
def test_a_report_never_replaces_what_starts_or_ends_as_a_file_of_a_format(
    data: bytes, known: bool, tmp_path: Path
) -> None:
    (tmp_path / "f").write_bytes(data)
    with open_source(tmp_path / "f") as source:
        assert has_magic(source) is known


def test_suffixes_are_known_in_any_case() -> None:
    assert all(map(known_suffix, ("a.parquet", "b.PQ", "/x/c.orc", "d.Mosaic")))
    assert not any(map(known_suffix, ("a.txt", "parquet", "b.parquet.crc")))


@pytest.mark.parametrize("writing", [False, True])
def test_what_writes_is_loaded_before_processes_are_forked_that_write(writing: bool) -> None:
    program = (
        "import sys\n"
        "from bloomcli.formats.registry import preload\n"
        f"preload(['a.orc', 'b.PARQUET', 'c.txt'], writing={writing})\n"
        "print(*(m for m in sys.modules if m.startswith('bloomcli.formats.') and m.endswith(('.file', '.plan'))))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    kinds = ("file", "plan") if writing else ("file",)
    assert set(done.stdout.split()) == {f"bloomcli.formats.{f}.{kind}" for f in ("orc", "parquet") for kind in kinds}


def test_options_of_formats_are_checked_against_their_records() -> None:
    given = {"kind": "both", "mosaic_draft": True, "variant": "parquet-2018-page"}
    assert checked_options(given) == given
    with pytest.raises(UsageError, match="no format has an option 'colour'"):
        checked_options({"colour": "red"})
    with pytest.raises(UsageError, match="no kind of filter is called 'x'") as caught:
        checked_options({"kind": "x"})
    assert caught.value.hint == "utf8 or both, for ORC"
    assert for_old_readers(given)
    assert not for_old_readers({"variant": "parquet", "kind": "both"})
    assert recorded_choices(given) == {"variant": "parquet-2018-page"}

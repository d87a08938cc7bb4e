"""Figures as people read them."""

from __future__ import annotations

import pytest

from bloomcli import words
from bloomcli.report import human


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (32 * 1024, "32.0 KiB"),
        (1024 * 1024 - 1, "1.0 MiB"),
        (128 << 20, "128.0 MiB"),
        (-2048, "-2.0 KiB"),
        (5 << 60, "5.0 EiB"),
        (5 << 70, "5120.0 EiB"),
    ],
)
def test_sizes_are_in_binary_units(count: int, text: str) -> None:
    assert words.size(count) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (1, "1 byte"), (1023, "1,023 bytes"), (1024, "1.0 KiB (1,024 bytes)")],
)
def test_an_exact_size_is_in_bytes_and_says_it_once(count: int, text: str) -> None:
    assert words.exact_size(count) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.0, "0 %"),
        (1.2e-5, "1.2e-03 %"),
        (9.1e-13, "9.1e-11 %"),
        (0.0001, "0.01 %"),
        (0.0098, "0.98 %"),
        (0.457, "45.7 %"),
        (0.99999, ">99.9 %"),
        (1.0, "100 %"),
    ],
)
def test_rates_never_round_up_to_a_claim(value: float | None, text: str) -> None:
    assert words.rate(value) == text


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (1000, 1000, "the same"),
        (1_000_000, 1_003_500, "+0.35 %"),
        (1000, 880, "-12.0 %"),
        (1000, 0, "-100.0 %"),
        (1_000_000_000, 1_000_009_000, "+<0.01 %"),
        (1_000_000_000, 999_991_000, "-<0.01 %"),
        (1000, 9_990, "+899.0 %"),
        (12_000, 536_870_912, "44,739 times as large"),
        (0, 5, "from nothing"),
    ],
)
def test_growth_is_reported_in_percent_or_times(before: int, after: int, said: str) -> None:
    assert human.growth(before, after) == said


def test_shares_counts_and_plurals() -> None:
    assert human.share(1, 0) == "0 %"
    assert human.share(1, 4) == "25.0 %"
    assert human.count(None) == "-"
    assert human.count(1234567.4) == "1,234,567"
    assert words.plural(1, "row group") == "1 row group"
    assert words.plural(0, "filter") == "0 filters"
    assert words.plural(1000, "filter") == "1,000 filters"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.004, "4 ms"), (0.41, "0.41 s"), (12.34, "12.3 s"), (125.2, "2 min 5 s"), (59.99, "60.0 s")],
)
def test_durations(value: float, text: str) -> None:
    assert human.seconds(value) == text


def test_what_a_terminal_would_act_on_is_made_visible() -> None:
    assert human.printable("id\x1b[2J\n") == "id\\x1b[2J\\n"
    assert human.printable("naïve 列") == "naïve 列"
    assert human.printable("a\u202eb\udc80") == "a\\u202eb\\udc80"


def test_nothing_starts_a_command_of_a_ci_log() -> None:
    assert human.printable("a##[error]b") == r"a#\x23[error]b"
    assert human.printable("a##vso[task.complete]b") == r"a#\x23vso[task.complete]b"
    assert human.printable("##teamcity[x]") == r"#\x23teamcity[x]"
    assert human.csv_field("##vso[x]") == r"#\x23vso[x]"
    assert human.printable("## 2 [x]") == "## 2 [x]"
    assert human.line("::error::x") == r"\x3a:error::x"
    assert human.line("  ::stop-commands::x") == r"  \x3a:stop-commands::x"
    assert human.line("id  a::b") == "id  a::b"


def test_csv_fields_distinguish_names() -> None:
    odd = ["a\nb", r"a\nb", r"a\\nb", "a\x1bb", r"a\x1bb", "a\u2028", r"a\u2028", "##[error]", r"#\x23[error]"]
    fields = [human.csv_field(name) for name in odd]
    assert len(set(fields)) == len(odd)
    assert [
        f.replace(r"\\", "\0").encode("ascii").decode("unicode_escape").replace("\0", "\\") for f in fields
    ] == odd
    assert human.csv_field("\udcff") == "\udcff"


def test_widths_are_terminal_cells() -> None:
    assert human.width("id") == 2
    assert human.width("列") == 2
    assert human.width("e\u0301") == 1


@pytest.mark.parametrize(
    ("files", "taken", "text"),
    [
        (1, 2.0, "0.5 files/s"),
        (2, 2.0, "1 file/s"),
        (5, 2.0, "2.5 files/s"),
        (2400, 2.0, "1,200 files/s"),
        (3, 0.0, "0 files/s"),
    ],
)
def test_a_speed_has_the_right_plural_and_a_slow_one_a_decimal(files: int, taken: float, text: str) -> None:
    assert human.speed(files, taken) == text

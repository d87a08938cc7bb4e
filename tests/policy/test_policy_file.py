"""The policy file: the meaning of each key, errors with their lines, and the search for the file."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import tracemalloc
from pathlib import Path
from typing import Final

import pytest
from support.engines import ROOT

from bloomcli import limits, validate
from bloomcli.cli import run
from bloomcli.errors import PolicyError
from bloomcli.model.file import Severity
from bloomcli.policy import policy_keys
from bloomcli.policy.policy import ColumnPart, Limits, Part, Policy
from bloomcli.policy.policy_file import FoundPolicy, find, load
from bloomcli.policy.table_schema import read

SCHEMA = '{"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": true, "metadata": {}}]}'

EVERYTHING = """\
require = ["id", "user.*"]
max-fpp = 0.01
max-oversize = 4
readers = ["spark", "pyspark.sql"]
table-schema = "schemas/orders.json"
exclude = ["tmp/**", "!tmp/keep/**"]

[severity]
filter-no-length = "error"

[off]
filter-draft = "only our own reader, which knows them, reads these"

[columns."user.*"]
max-fpp = 0.05
max-oversize = 8
off.filter-oversized = "they grow"

[columns.tags]
require = true

[[files]]
paths = ["orders/**", "*.orc"]
require = ["name"]
max-fpp = 0.001
max-oversize = 2.5
readers = []
table-schema = "schemas/orders.json"
severity = { filter-fpp = "note" }
off = { filter-untrusted = "known" }
columns.id.max-fpp = 0.2

[[files]]
paths = ["archive"]
max-fpp = 0.5
""".replace(', "pyspark.sql"', "")


def written(folder: Path, text: str | bytes, name: str = "bloom.toml") -> Path:
    """A policy file, with a table's schema in the same directory."""
    (folder / "schemas").mkdir(exist_ok=True)
    (folder / "schemas" / "orders.json").write_text(SCHEMA)
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(folder: Path, text: str | bytes, name: str = "bloom.toml") -> PolicyError:
    """The error that a text is."""
    with pytest.raises(PolicyError) as raised:
        load(written(folder, text, name))
    assert raised.value.exit_code == 2
    return raised.value


def test_every_key_becomes_what_it_says(tmp_path: Path) -> None:
    path = written(tmp_path, EVERYTHING)
    table = read(tmp_path / "schemas" / "orders.json")
    user = ColumnPart(
        names=("user.*",), limits=Limits(max_fpp=0.05, max_oversize=8), off={"filter-oversized": "they grow"}
    )
    assert load(path) == Policy(
        path=str(path),
        base=str(tmp_path),
        whole=Part(
            require=("id", "user.*"),
            max_fpp=0.01,
            max_oversize=4,
            severity={"filter-no-length": Severity.ERROR},
            off={"filter-draft": "only our own reader, which knows them, reads these"},
            columns=(user, ColumnPart(names=("tags",), limits=Limits(require=True))),
            readers=("spark",),
            table=table,
        ),
        files=(
            Part(
                paths=("orders/**", "*.orc"),
                require=("name",),
                max_fpp=0.001,
                max_oversize=2.5,
                severity={"filter-fpp": Severity.NOTE},
                off={"filter-untrusted": "known"},
                columns=(ColumnPart(names=("id",), limits=Limits(max_fpp=0.2)),),
                readers=(),
                table=table,
            ),
            Part(paths=("archive",), max_fpp=0.5),
        ),
        exclude=("tmp/**", "!tmp/keep/**"),
    )


def test_the_folder_is_the_policys_wherever_it_is_read_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, EVERYTHING)
    monkeypatch.chdir(tmp_path)
    policy = load("bloom.toml")
    assert (policy.path, policy.base) == ("bloom.toml", str(tmp_path))
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert load("../bloom.toml").base == str(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "# nothing yet\n", "[severity]\n[off]\n[columns]\n", "require = []\nfiles = []\n"]
)
def test_a_policy_may_ask_nothing(text: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    assert load(path) == Policy(path=str(path), base=str(tmp_path))


def test_a_reader_may_be_named_by_another_of_its_names(tmp_path: Path) -> None:
    assert load(written(tmp_path, 'readers = ["parquet-mr"]')).whole.readers == ("parquet-java",)


def test_a_tables_schema_is_for_readers_of_any_part_or_of_the_run(tmp_path: Path) -> None:
    schema = "table-schema = 'schemas/orders.json'\n"
    for text in (
        f"{schema}readers = ['spark']",
        f"{schema}[[files]]\npaths = ['a']\nreaders = ['spark']",
        f"readers = ['spark']\n[[files]]\npaths = ['a']\n{schema}",
    ):
        load(written(tmp_path, text))
    alone = written(tmp_path, schema)
    assert load(alone, readers=["trino"]).whole.table is not None
    orders = ROOT / "fixtures" / "parquet" / "orders.parquet"
    assert validate(orders, policy=alone, readers=["trino"]).ok
    with pytest.raises(PolicyError, match="none is set"):
        validate(orders, policy=alone)


def test_newlines_and_marks_of_other_systems_are_read(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbf" + EVERYTHING.replace("\n", "\r\n").encode()
    plain = load(written(tmp_path, EVERYTHING))
    assert load(written(tmp_path, text)) == plain
    error = refused(tmp_path, text.replace(b'"error"', b'"bad"'))
    assert error.path == f"{tmp_path}/bloom.toml:9"


# --- what is refused: the text, what the message says, its line and field, what the hint says

REFUSED = [
    ("requires = []", "unknown key 'requires'", 1, "requires", "did you mean require"),
    ("version = 1", "unknown key 'version'", 1, "version", "one of require, max-fpp"),
    ("reader = 1", "unknown key 'reader'", 1, "reader", "did you mean readers"),
    ("filter-draft = 1", "unknown key 'filter-draft'", 1, "filter-draft", 'off.filter-draft = "the reason"'),
    ("[tool.bloom]\nrequire = []", "unknown key 'tool'", 1, "tool", "pyproject.toml"),
    (
        "[[files]]\npaths=['a']\nmax-fpp=0.1\nexclude=['b']",
        "unknown key 'exclude'",
        4,
        "files[0].exclude",
        "above the tables",
    ),
    ("paths = ['a']", "unknown key 'paths'", 1, "paths", "[[files]]"),
    ("[columns.a]\nseverity.x = 1", "unknown key 'severity'", 2, "columns.a.severity", "for all files"),
    ("[columns.a]\nfilter-fpp = 1", "unknown key 'filter-fpp'", 2, "columns.a.filter-fpp", "severity.filter-fpp"),
    ("max-fpp = 1", "between 0 and 1, not at 1", 1, "max-fpp", "0.01"),
    ("max-fpp = 5", "not at 5", 1, "max-fpp", "for 5 %: 0.05"),
    ("max-fpp = true", "expected a number, found a boolean", 1, "max-fpp", None),
    (f"max-fpp = {'9' * 400}", "too large", 1, "max-fpp", None),
    ("max-oversize = 0.5", "at least once", 1, "max-oversize", None),
    ("max-oversize = inf", "not inf times", 1, "max-oversize", "no limit"),
    ("require = 'id'", "expected an array, found a string", 1, "require", 'require = ["id"]'),
    ("require = [\n 'id',\n 5]", "expected a column's name, found a number", 3, "require[1]", None),
    ("require = ['']", "empty column", 1, "require[0]", None),
    ("require = ['a',\n'b',\n\n'a']", "'a' is listed twice", 4, "require[2]", "remove one"),
    ("readers = ['sprak']", "sprak", 1, "readers[0]", "spark"),
    ("readers = ['spark',\n'pyspark']", "the same as 'spark'", 2, "readers[1]", "remove one"),
    ("table-schema = 'gone.json'", "gone.json", 1, "table-schema", None),
    ("table-schema = 5", "expected a file's name, found a number", 1, "table-schema", None),
    ("table-schema = ' '", "name is empty", 1, "table-schema", None),
    ("table-schema = 'schemas/orders.json'", "applies to readers, and none is set", 1, "table-schema", "--readers"),
    (
        "readers = []\ntable-schema = 'schemas/orders.json'",
        "applies to readers, and none is set",
        2,
        "table-schema",
        'readers = ["spark", "trino"]',
    ),
    (
        "[[files]]\npaths = ['a']\ntable-schema = 'schemas/orders.json'",
        "applies to readers, and none is set",
        3,
        "files[0].table-schema",
        "--readers",
    ),
    ("exclude = ['a/[b']", "brackets", 1, "exclude[0]", None),
    ("exclude = ['!a']", "no glob before it", 1, "exclude[0]", "put such"),
    ("[severity]\nfilter-lenght = 'note'", "no rule 'filter-lenght'", 2, "severity.filter-lenght", "filter-length"),
    ("[severity]\nfilter-fpp = 'warn'", "unknown severity 'warn'", 2, "severity.filter-fpp", "warning"),
    ("[severity]\nfilter-fpp = 'off'", "unknown severity 'off'", 2, "severity.filter-fpp", "[off]"),
    ("[severity]\nfilter-fpp = 'x'", "unknown severity 'x'", 2, "severity.filter-fpp", "one of error, warning, note"),
    ("[severity]\nmax-fpp = 0.1", "no rule 'max-fpp'", 2, "severity.max-fpp", "above the tables"),
    ("severity = 'note'", "expected a table of rules, found a string", 1, "severity", None),
    ("[off]\nfilter-fpp = '  '", "reason is empty", 2, "off.filter-fpp", "state why"),
    ("[off]\nfilter-fpp = true", "expected a reason, found a boolean", 2, "off.filter-fpp", "why"),
    (
        "[off]\nfilter-fpp = 'x'\n[severity]\nfilter-fpp = 'note'",
        "no effect: the rule is also switched off",
        4,
        "severity.filter-fpp",
        "remove one",
    ),
    (
        "[columns.user.email]\nmax-fpp = 0.1",
        "unknown key 'email'",
        1,
        "columns.user.email",
        '[columns."user.email"]',
    ),
    (
        "[[files]]\npaths = ['a']\ncolumns.user.'e \"x'.off.filter-fpp = 'y'",
        "unknown key 'e \"x'",
        3,
        'files[0].columns.user."e \\"x"',
        '[files.columns."user.e \\"x"]',
    ),
    ("columns = 1", "expected a table, found a number", 1, "columns", '[columns."user.*"]'),
    ("[columns.a]", "no requirements", 1, "columns.a", "require, max-fpp"),
    ("[columns.'']\nrequire = true", "name is empty", 1, 'columns.""', None),
    (
        '[columns."user.*"]\nrequire = false',
        "false has no effect",
        2,
        'columns."user.*".require',
        "off.filter-required",
    ),
    (
        "require = ['a']\n[columns.a]\nrequire = true",
        "also in the list require",
        3,
        "columns.a.require",
        "remove one",
    ),
    ('[columns."a\\"b"]\nmax-fpp = 3', "not at 3", 2, 'columns."a\\"b".max-fpp', "0.03"),
    ("files = {}", "expected an array, found a table", 1, "files", "two brackets"),
    ("files = [5]", "expected a table, found a number", 1, "files[0]", None),
    ("[[files]]\nmax-fpp = 0.1", "without paths", 1, "files[0]", 'paths = ["orders/**"]'),
    ("[[files]]\npaths = []\nmax-fpp = 0.1", "matches no file", 2, "files[0].paths", "all files"),
    ("[[files]]\npaths = ['a']", "no requirements", 1, "files[0]", "require, max-fpp"),
    ("[[files]]\npaths = ['a', '../b']\nmax-fpp=0.1", "absolute paths", 2, "files[0].paths[1]", None),
    (
        "[[files]]\npaths=['a', 'b']\nmax-fpp=0.1\n[[files]]\npaths=['b', 'a']\nmax-fpp=0.2",
        "same paths as files[0]",
        5,
        "files[1].paths",
        "merge",
    ),
]


@pytest.mark.parametrize(
    ("text", "message", "line", "field", "hint"), REFUSED, ids=[repr(r[0])[:60] for r in REFUSED]
)
def test_what_is_invalid_is_refused_on_its_line(
    text: str, message: str, line: int, field: str, hint: str | None, tmp_path: Path
) -> None:
    error = refused(tmp_path, text)
    assert error.message.startswith(f"{tmp_path}/bloom.toml:{line}: ")
    assert error.message.endswith(f" (at {field})")
    assert message in error.reason
    assert error.field == field
    assert hint is None or hint in (error.hint or "")


@pytest.mark.parametrize(("text", "message", "line", "field", "hint"), REFUSED[:6])
def test_in_pyproject_lines_and_fields_are_of_that_file(
    text: str, message: str, line: int, field: str, hint: str | None, tmp_path: Path
) -> None:
    if "[" in text.replace("[]", ""):
        text = re.sub(r"^(\[+)(?!tool)", r"\1tool.bloom.", text, flags=re.MULTILINE).replace(
            "[tool.bloom]", "tool.a = 1"
        )
    before = '[project]\nname = "x"\nrequire = 5\n[tool.other]\nmax-fpp = "x"\n\n'
    error = refused(tmp_path, f"{before}[tool.bloom]\n{text}\n[tool.more]\nzzz = 1\n", "pyproject.toml")
    assert message in error.reason
    assert error.path == f"{tmp_path}/pyproject.toml:{7 + line}"
    assert error.field == f"tool.bloom.{field}" or field == "tool"


def test_a_table_within_pyproject_is_read_as_bloom_toml_is(tmp_path: Path) -> None:
    text = re.sub(r"^(\[+)", r"\1tool.bloom.", EVERYTHING, flags=re.MULTILINE)
    other = "[project]\nname = 'x'\n[tool.ruff]\nline-length = 100\n"
    path = written(tmp_path, f"{other}[tool.bloom]\n{text}", "pyproject.toml")
    plain = load(written(tmp_path, EVERYTHING))
    policy = load(path)
    assert (policy.whole, policy.files, policy.exclude) == (plain.whole, plain.files, plain.exclude)
    assert policy.path == str(path)


@pytest.mark.parametrize("text", ["", "[tool.other]\nbloom = 1\n", "tool = 1\n"])
def test_a_pyproject_without_the_table_is_no_policy(text: str, tmp_path: Path) -> None:
    assert "no table [tool.bloom]" in refused(tmp_path, text, "pyproject.toml").reason


def test_a_pyproject_whose_table_is_none_is_refused(tmp_path: Path) -> None:
    error = refused(tmp_path, "[tool]\nbloom = 5\n", "pyproject.toml")
    assert error.message == f"{tmp_path}/pyproject.toml:2: expected a table, found a number (at tool.bloom)"


def test_all_problems_are_reported_at_once_in_the_order_of_the_lines(tmp_path: Path) -> None:
    text = 'max-fpp = 7\nrequire = ["a", "a"]\nx = 1\n[off]\nfilter-fpp = ""\n[[files]]\npaths = [\n  "",\n]\n'
    text += "max-fpp = 0.1\n"
    error = refused(tmp_path, text)
    first, *rest = error.message.splitlines()
    assert first == f"{tmp_path}/bloom.toml: 5 problems"
    assert [line.split(": ")[0] for line in rest] == [f"  {tmp_path}/bloom.toml:{n}" for n in (1, 2, 3, 5, 8)]
    assert rest[0].endswith("(at max-fpp); for 7 %: 0.07")
    assert rest[4].endswith("an empty glob (at files[0].paths[0])")


def test_each_thing_that_is_wrong_is_one_line_whatever_it_is_called(tmp_path: Path) -> None:
    error = refused(tmp_path, '"a\\nb" = 1\nrequire = ["x\\ny", "x\\ny"]\n[columns."c\\nd"]\nmax-fpp = 7\n')
    assert len(error.message.splitlines()) == 4
    assert refused(tmp_path, '[columns."c\\nd"]\nmax-fpp = 7\n').field == 'columns."c\\nd".max-fpp'


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("a = \n", 1, "not TOML: invalid value, column 5"),
        ("\n\n[x\n", 3, "not TOML: "),
        ("require = [\n'a'\n", 2, "at the end"),
        ("a = 1\na = 2\n", 2, "not TOML: cannot overwrite a value"),
        ("[off]\n[off]\n", 2, "twice"),
    ],
)
def test_what_is_no_toml_is_refused_on_its_line(text: str, line: int, reason: str, tmp_path: Path) -> None:
    error = refused(tmp_path, text)
    assert error.message.startswith(f"{tmp_path}/bloom.toml:{line}: ")
    assert reason in error.reason


def test_what_is_not_utf8_is_refused_on_its_line(tmp_path: Path) -> None:
    error = refused(tmp_path, b'a = 1\nb = "\xff"\n')
    assert error.message == f"{tmp_path}/bloom.toml:2: not UTF-8, which TOML requires"


def test_a_file_that_is_no_policy_is_not_read_whole(tmp_path: Path) -> None:
    assert "larger than" in refused(tmp_path, b"#" * (limits.POLICY_MAX_BYTES + 1)).reason
    load(written(tmp_path, b"#" * limits.POLICY_MAX_BYTES))


@pytest.mark.parametrize("name", ["gone.toml", ".", "a\0b"])
def test_a_file_that_can_not_be_read_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="the policy can't be read"):
        load(f"{tmp_path}/{name}")


def test_keys_of_a_newer_toml_have_lines_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers of TOML 1.1 read inline tables of several lines."""
    newer = "a = {\n  b = 1,\n}\nmax-fpp = 7\n"
    monkeypatch.setattr(tomllib, "loads", lambda _: {"max-fpp": 7})
    error = refused(tmp_path, newer)
    assert error.message.startswith(f"{tmp_path}/bloom.toml:4: a false-positive rate")


def test_reading_a_policy_loads_no_package_that_it_does_not_need(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from bloomcli.policy.policy_file import load\n"
        "load(sys.argv[1]).for_file('a.orc')\n"
        "print(*{name.partition('.')[0] for name in sys.modules})\n"
    )
    path = written(tmp_path, "max-fpp = 0.1\n")
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, cwd=ROOT, check=True)
    names = set(done.stdout.split())
    assert "bloomcli" in names
    assert not names & {"pathspec", "pyarrow", "click", "rich", "numpy"}


# --- docs/policy.md

REFERENCE = (ROOT / "docs" / "policy.md").read_text()
EXAMPLES = re.findall(r"^```toml\n(.*?)^```$", REFERENCE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("text", EXAMPLES)
def test_each_example_of_the_reference_is_a_policy(text: str, tmp_path: Path) -> None:
    name = "pyproject.toml" if "[tool.bloom]" in text else "bloom.toml"
    policy = load(written(tmp_path, text, name))
    assert policy != Policy(path=policy.path, base=policy.base), "it asks something"


def test_the_reference_has_each_key_and_an_example_of_it() -> None:
    assert len(EXAMPLES) > 8
    rows = {m[1]: m[2] for m in re.finditer(r"^\| `([a-z-]+)` \| [^|]* \|(.*)\|$", REFERENCE, re.MULTILINE)}
    places = {
        key: [bool(cell.strip()) for cell in row.split("|")] for key, row in rows.items() if row.count("|") == 2
    }
    assert places == {
        key: [key in policy_keys.TOP, key in policy_keys.FILES, key in policy_keys.COLUMN]
        for key in {*policy_keys.TOP, *policy_keys.FILES, *policy_keys.COLUMN}
    }
    for key in places:
        assert any(re.search(rf"^\s*(\[+)?{key}\b", text, re.MULTILINE) for text in EXAMPLES), key


def test_the_references_refusal_is_what_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bloom.toml").write_text("\n\nmax-fpp = 5\n\n\n\n\n[off]\nfilter-lenght = 'x'\n")
    with pytest.raises(PolicyError) as raised:
        load("bloom.toml")
    said = [line.strip() for line in str(raised.value).splitlines()]
    (block,) = re.findall(r"^```text\n(.*?)^```$", REFERENCE, re.DOTALL | re.MULTILINE)
    shown = [line.strip() for line in block.splitlines()]
    assert [line.partition("?")[0].partition(", filter")[0] for line in said] == [s.partition("?")[0] for s in shown]


# --- find


def test_the_nearest_policy_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "a" / "b" / "c"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[tool.bloom]\n")
    assert find(inner) == tmp_path / "pyproject.toml"
    (tmp_path / "a" / "bloom.toml").write_text("")
    assert find(inner) == tmp_path / "a" / "bloom.toml"
    (tmp_path / "a" / "b" / "pyproject.toml").write_text("[tool.other]\n# bloom\n")
    assert find(inner) == tmp_path / "a" / "bloom.toml"
    (inner / "bloom.toml").mkdir()
    (inner / "pyproject.toml").mkdir()
    assert find(inner) == tmp_path / "a" / "bloom.toml"
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.bloom]\n")
    assert find(tmp_path / "a") == tmp_path / "a" / "bloom.toml", "before pyproject.toml of the same folder"
    assert find(tmp_path / "a" / "file.orc") == tmp_path / "a" / "bloom.toml"
    monkeypatch.chdir(inner)
    assert find(Path()) == tmp_path / "a" / "bloom.toml"
    assert find("..") == tmp_path / "a" / "bloom.toml"


def test_a_link_to_a_policy_that_is_gone_is_an_error_and_not_the_lack_of_a_policy(tmp_path: Path) -> None:
    (tmp_path / "bloom.toml").symlink_to(tmp_path / "gone.toml")
    inner = tmp_path / "a"
    inner.mkdir()
    assert find(inner) == tmp_path / "bloom.toml"
    with pytest.raises(PolicyError, match="no such file"):
        load(tmp_path / "bloom.toml")
    (tmp_path / "gone.toml").write_text("max-fpp = 0.5\n")
    assert load(find(inner) or "").path == str(tmp_path / "bloom.toml")


def test_no_policy_is_found_where_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'bloom'\n")
    above = find(tmp_path.parent)
    assert find(tmp_path) == above
    assert find(f"{tmp_path}/a\0b/c") == above
    (tmp_path / "pyproject.toml").write_text('[tool]\n"\\u0062loom" = {}\n')
    assert find(tmp_path) == tmp_path / "pyproject.toml"


def test_a_pyproject_that_is_no_toml_counts_where_it_names_the_table(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text("[tool.bloom]\nrequire = [\n")
    assert find(tmp_path) == path
    path.write_text("[tool.other]\nname = bloom\n")
    assert find(tmp_path) != path
    path.write_bytes(b"[tool.other]\n# \xff bloom\n")
    assert find(tmp_path) != path


def test_a_pyproject_that_may_not_be_read_is_passed_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text("[tool.bloom]\n")

    def fail(name: Path, _: int) -> bytes:
        raise PermissionError(13, "Permission denied", str(name))

    monkeypatch.setattr("bloomcli.policy.policy_file.read_file", fail)
    assert find(tmp_path) != path


# --- what a small hostile text may cost

DEEP: Final = {
    "a table": f"[{'a.' * 20_000}a]\nb = 1\n",
    "a key": f"{'a.' * 20_000}a = 1\n",
    "a key in an inline table": f"a = {{ {'a.' * 20_000}a = 1 }}\n",
    "a key with quotes": "'a' . " * 10_000 + "a = 1\n",
    "inline tables": "a = " + "{a = " * 5_000 + "1" + "}" * 5_000 + "\n",
    "arrays": f"a = {'[' * 20_000}{']' * 20_000}",
}


@pytest.mark.parametrize("kind", DEEP)
def test_deep_nesting_is_refused_before_it_takes_memory(kind: str, tmp_path: Path) -> None:
    name = "pyproject.toml" if kind in {"a key", "arrays"} else "bloom.toml"
    path = written(tmp_path, DEEP[kind] + "\n# tool.bloom", name)
    tracemalloc.start()
    try:
        assert find(tmp_path) == path
        with pytest.raises(PolicyError, match="nested too deeply"):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


def test_the_lines_of_nested_keys_take_memory_by_the_length_of_the_text(tmp_path: Path) -> None:
    level = "a." * 7 + "a"
    nested = "".join(f"a{n} = {{ {level} = {{ {level} = {{ {level} = 1 }} }} }}\n" for n in range(500))
    tracemalloc.start()
    try:
        assert "500 problems" in refused(tmp_path, nested).reason
        assert tracemalloc.get_traced_memory()[1] < 500 * len(nested)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("key", ["max-fpp", "other"])
def test_an_integer_of_thousands_of_digits_is_refused(key: str, tmp_path: Path) -> None:
    error = refused(tmp_path, f"{key} = {'9' * 50_000}\n")
    assert "an integer with thousands of digits" in error.reason
    assert run(["validate", str(ROOT / "README.md"), "--policy", str(tmp_path / "bloom.toml")]) == 2


@pytest.mark.parametrize("text", ["'''", '"""', '"""\\', "'", '"', "[[", "{{", 'a = """\\"""', "a.", "\x00"])
def test_unfinished_text_of_any_length_is_scanned_once(text: str, tmp_path: Path) -> None:
    assert refused(tmp_path, text * 50_000).reason


# --- a policy that was found, not named, refers to files below it only

SECRET: Final = "root:x:0:0:secret\n"


def found_policy(tmp_path: Path, schema: str) -> PolicyError:
    """The error of a policy in the directory `work`, found there."""
    (tmp_path / "outside").write_text(SECRET)
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "inside").write_text(SECRET)
    (folder / "link").symlink_to("../outside")
    path = written(folder, f"readers = ['spark']\ntable-schema = '{schema}'\n")
    with pytest.raises(PolicyError) as caught:
        load(FoundPolicy(path))
    return caught.value


@pytest.mark.parametrize(
    "schema", ["../outside", "{root}/outside", "link", "./sub/../../outside", "s3://bucket/schema", "/dev/zero"]
)
def test_a_found_policy_reads_no_table_schema_outside_its_directory(schema: str, tmp_path: Path) -> None:
    error = found_policy(tmp_path, schema.format(root=tmp_path))
    assert "isn't below the policy's directory" in error.reason
    assert "secret" not in f"{error} {error.hint}"


@pytest.mark.parametrize("schema", ["inside", "gone", "."])
def test_the_error_of_a_found_policy_has_nothing_from_the_file_that_it_names(schema: str, tmp_path: Path) -> None:
    error = found_policy(tmp_path, schema)
    assert "can't be read as a table's schema" in error.reason or "isn't below" in error.reason
    assert not any(part in f"{error} {error.hint}" for part in ("secret", "root:", "x:0"))


def test_a_found_policy_reads_a_table_schema_below_it(tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "orders.sql").write_text("id bigint")
    path = written(tmp_path, "readers = ['spark']\ntable-schema = 'schemas/orders.sql'\n")
    assert load(FoundPolicy(path)).whole.table is not None


def test_the_command_line_distrusts_the_policy_that_it_finds_not_the_one_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "outside").write_text(SECRET)
    (tmp_path / "work").mkdir()
    written(tmp_path / "work", "readers = ['spark']\ntable-schema = '../outside'\n")
    orders = str(ROOT / "fixtures" / "parquet" / "orders.parquet")
    monkeypatch.chdir(tmp_path / "work")
    for command in (["validate"], ["add", "--dry-run", "-c", "*"], ["advise"]):
        assert run([*command, orders]) == 2
        said = capsys.readouterr().err
        assert "isn't below the policy's directory" in said
        assert "secret" not in said
    assert run(["validate", orders, "--policy", "bloom.toml"]) == 2
    assert "isn't below" not in capsys.readouterr().err

"""The picture holds: imports go one way, nothing heavy is imported early, and modules stay small."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import bloomcli

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "bloomcli"
MODULES = sorted(PACKAGE.rglob("*.py"))

LAYERS = (
    ("errors", "mending", "model", "limits", "rows", "stopping", "system"),
    ("rules",),
    (
        "source",
        "copying",
        "hashes",
        "kernels",
        "filters",
        "listing",
        "patterns",
        "sidecar",
        "temporary",
        "exchange",
        "locks",
        "signals",
        "civil",
        "threads",
    ),
    ("literals",),
    ("formats",),
    ("checks",),
    ("renewing",),
    ("atomic", "guards"),
    ("commands",),
    ("engines",),
    ("spark",),
    ("report",),
    ("cli",),
)
"""From the ground up; a module imports from its own layer's part and from the layers below."""

RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
FORBIDDEN = {"click": ("cli",), "rich": ("cli", "report"), "pyspark": ("engines", "spark"), "py4j": ("engines",)}


def imported(path: Path) -> set[str]:
    """Every module that a file imports, at any depth, whole names."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            found |= {f"{module}.{alias.name}" for alias in node.names} | {module}
    return found


def part_of(path: Path) -> str:
    """The part of the picture that a file belongs to: ``formats``, ``cli``, ``errors``."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def test_there_are_modules_to_look_at() -> None:
    assert len(MODULES) > 30
    assert {part_of(m) for m in MODULES} - {"__init__", "__main__"} <= RANK.keys()


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    part = part_of(path)
    if part in {"__init__", "__main__"}:
        return
    for name in imported(path):
        pieces = name.split(".")
        if pieces[0] == "bloomcli" and len(pieces) > 1 and pieces[1] in RANK:
            assert RANK[pieces[1]] <= RANK[part], f"{part} imports {name}"
            if RANK[pieces[1]] == RANK[part] and part not in LAYERS[0] + LAYERS[2]:
                assert pieces[1] == part
        for package, homes in FORBIDDEN.items():
            assert pieces[0] != package or part in homes, f"{part} imports {package}"


def test_only_the_spark_engine_knows_pyspark_and_the_library_only_its_types() -> None:
    users = {m for m in MODULES if any(n.partition(".")[0] in {"pyspark", "py4j"} for n in imported(m))}
    engine = {m for m in users if m.parent == PACKAGE / "engines"}
    assert users - engine == {PACKAGE / "spark.py"}
    assert engine
    assert all(m.stem.startswith("spark") for m in engine)
    program = "import sys, bloomcli.spark, bloomcli.engines.spark; assert 'pyspark' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_modules_say_what_they_are_and_stay_small(path: Path) -> None:
    text = path.read_text()
    assert ast.get_docstring(ast.parse(text)) or not text.strip(), "a module says what it is"
    assert len(text.splitlines()) <= 400
    assert path.name != "utils.py"


def test_formats_have_the_same_file_names() -> None:
    wanted = {"spec.py", "footer.py", "filter_header.py", "values.py", "splice.py", "describe.py", "file.py"}
    wanted |= {"change.py", "check.py", "filterable.py"}
    folders = [f for f in (PACKAGE / "formats").iterdir() if (f / "__init__.py").is_file()]
    assert folders
    for folder in folders:
        assert wanted <= {p.name for p in folder.iterdir()}, folder.name


@pytest.fixture(scope="module")
def filtered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("imports") / "f.parquet"
    pq.write_table(pa.table({"id": [1, 2, 3]}), path, bloom_filter_options={"id": {"ndv": 3}})
    return path


def loaded_by(*args: object) -> set[str]:
    """Modules that are there after a command line ran in a fresh interpreter."""
    program = (
        "import sys, io\n"
        "from bloomcli.cli import run\n"
        "kept, sys.stdout = sys.stdout, io.StringIO()\n"
        f"code = run({[str(a) for a in args]!r})\n"
        "sys.stdout = kept\n"
        "print(code, *sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    code, *names = done.stdout.split()
    assert code == "0", done.stderr
    return set(names)


@pytest.mark.parametrize("args", [["inspect"], ["probe", "1"], ["dump"], ["validate"], ["fold", "--dry-run"]])
def test_looking_at_a_local_file_imports_neither_pyarrow_nor_pyspark(args: list[str], filtered: Path) -> None:
    names = loaded_by(args[0], filtered, *args[1:])
    assert not names & {"pyarrow", "pyspark", "numpy", "pandas", "fsspec", "rich", "duckdb"}


@pytest.mark.parametrize("args", [["inspect"], ["validate"], ["validate", "--deep"], ["probe", "2"]])
@pytest.mark.parametrize("name", ["f.parquet", "f.orc"])
def test_what_only_reads_starts_without_what_writes(args: list[str], name: str, filtered: Path) -> None:
    path = filtered.with_name(name)
    if not path.exists():
        orc.write_table(pa.table({"id": [1, 2, 3]}), path.with_suffix(".bare"))
        bloomcli.add(path.with_suffix(".bare"), ["id"], output=path)
    names = loaded_by(args[0], path, *args[1:])
    assert "bloomcli.formats." + name.removeprefix("f.") + ".file" in names
    writing = {f"bloomcli.formats.{kind}.{module}" for kind in ("parquet", "orc") for module in ("change", "splice")}
    assert not names & {"bloomcli.atomic", "bloomcli.commands.change", "bloomcli.commands.add", *writing}
    assert not names & {"thriftpy2", "tempfile", "secrets", "hashlib", "importlib.resources", "zoneinfo"}
    assert ("concurrent.futures" in names) == ("--deep" in args)


def test_help_imports_no_command_and_no_library_but_click() -> None:
    names = loaded_by("--help")
    assert not names & {"bloomcli.commands", "bloomcli.rules", "bloomcli.model"}
    assert "click" in names
    assert not names & {"pyarrow", "pyspark", "numpy", "rich", "thriftpy2", "xxhash", "mmh3"}


def test_the_package_itself_imports_nothing_heavy() -> None:
    program = "import sys; before = set(sys.modules); import bloomcli; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    names = {name.partition(".")[0] for name in done.stdout.split()}
    assert "bloomcli" in names
    assert names <= {"bloomcli", *sys.stdlib_module_names}

"""The picture of docs/architecture.md holds: imports go one way, nothing heavy comes early, modules stay small."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from support.modules import facts

import bloomcli

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "bloomcli"
MODULES = sorted(PACKAGE.rglob("*.py"))

LAYERS = (
    "version",
    "limits",
    "words",
    "model",
    "hints",
    "errors",
    "rules",
    "concurrency",
    "kernels",
    "filters",
    "values",
    "storage",
    "index",
    "formats",
    "engine_filters",
    "policy",
    "checks",
    "commands",
    "datasets",
    "tables",
    "validation",
    "finding",
    "indexing",
    "advice",
    "trials",
    "report",
    "spark",
    "functions",
    "bloomcli",
    "cli",
    "__main__",
)
"""From the ground up: a module imports from its own package and from those before it. Nothing is exempt: imports
within functions and for type checking count too. ``bloomcli`` is the package's own ``__init__``."""

FORBIDDEN = {
    "click": ("cli",),
    "rich": ("cli", "report"),
    "jinja2": ("report",),
    "markdown_it": ("report",),
    "PIL": ("report",),
    "pyspark": ("datasets", "spark", "tables"),
    "py4j": ("datasets", "tables"),
    "sqlglot": ("advice", "tables", "values"),
}
"""Libraries, and the only packages that import them."""


def name_of(path: Path) -> str:
    """A module's dotted name."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


NAMES = {name_of(path): path for path in MODULES}


@functools.cache
def imported(path: Path) -> frozenset[str]:
    """Every module that a file imports, at any depth; of our own packages the modules that names come from."""
    found: set[str] = set()
    for module, name, level in facts(path).imports:
        assert level == 0, f"{path}: relative import"
        whole = f"{module}.{name}"
        found.add(whole if name and whole in NAMES else module)
    return frozenset(found)


def layer_of(name: str) -> str:
    """The layer that a module of ours is in: ``formats`` of ``bloomcli.formats.base``."""
    return [*name.split("."), name][1]


def test_there_are_modules_to_look_at_and_every_one_has_a_layer() -> None:
    assert len(MODULES) > 100
    assert {layer_of(name) for name in NAMES} == set(LAYERS)


def test_there_are_no_circles() -> None:
    graph = {name: imported(path) & NAMES.keys() for name, path in NAMES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_imports_go_one_way() -> None:
    wrong = []
    for importer, path in NAMES.items():
        own = layer_of(importer)
        for name in imported(path):
            first = name.partition(".")[0]
            up = first == "bloomcli" and LAYERS.index(layer_of(name)) > LAYERS.index(own)
            if up or own not in FORBIDDEN.get(first, (own,)):
                wrong.append(f"{importer} imports {name}")
    assert wrong == []


def layers_of_the_page() -> Iterator[str]:
    """The packages in the picture of docs/architecture.md, from the ground up."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    picture = re.search(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert picture, "docs/architecture.md has its picture in a block of text"
    for line in reversed(picture.group(1).splitlines()):
        if found := re.match(r"^ {0,2}(\w+)", line):
            yield found.group(1)


def test_the_picture_in_the_documentation_shows_these_layers() -> None:
    assert tuple(layers_of_the_page()) == LAYERS


def test_the_docstring_of_parquet_lists_its_modules_each_after_those_that_it_imports() -> None:
    folder = PACKAGE / "formats" / "parquet"
    listed = re.findall(r"^    (\w+) ", (folder / "__init__.py").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    for at, module in enumerate(listed):
        below = {name.rpartition(".")[2] for name in imported(folder / f"{module}.py") if ".formats.parquet." in name}
        assert below <= set(listed[:at]), module


def test_only_the_spark_engine_and_tables_know_pyspark_and_the_library_only_its_types() -> None:
    users = {m for m in MODULES if any(n.partition(".")[0] in {"pyspark", "py4j"} for n in imported(m))}
    engine = {m for m in users if m.parent == PACKAGE / "datasets"}
    tables = {m for m in users if PACKAGE / "tables" in m.parents}
    assert users - engine - tables == {PACKAGE / "spark.py"}
    assert engine
    assert all(m.stem.startswith("spark") for m in engine)
    modules = "bloomcli.spark, bloomcli.datasets.spark, bloomcli.tables.change"
    program = f"import sys, {modules}; assert 'pyspark' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


def test_modules_say_what_they_are() -> None:
    texts = {name: path.read_text() for name, path in NAMES.items()}
    assert [name for name, text in texts.items() if text.strip() and not facts(NAMES[name]).docstring] == []
    assert [path for path in MODULES if path.name == "utils.py"] == []


def packages(folder: Path) -> Iterator[Path]:
    """The packages below a folder, relative to bloomcli."""
    for init in folder.rglob("__init__.py"):
        if init.parent != PACKAGE:
            yield init.parent.relative_to(PACKAGE)


def test_every_package_has_its_folder_of_tests() -> None:
    found = set(packages(PACKAGE))
    assert len(found) > 10
    assert [str(name) for name in sorted(found) if not list((ROOT / "tests" / name).glob("test_*.py"))] == []


def test_formats_have_the_same_file_names() -> None:
    names = "spec footer schema values dictionary splice describe file plan check search sampling index_input"
    names += " bloom_filter statistics"
    wanted = {f"{name}.py" for name in (*names.split(), "format", "limits")}
    folders = [f for f in (PACKAGE / "formats").iterdir() if (f / "__init__.py").is_file()]
    assert folders
    for folder in folders:
        assert wanted <= {p.name for p in folder.iterdir()}, folder.name


@pytest.fixture(scope="module")
def filtered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a file of each format, f.parquet, f.orc and f.mosaic, with filters on `id`."""
    folder = tmp_path_factory.mktemp("imports")
    table = pa.table({"id": [1, 2, 3]})
    pq.write_table(table, folder / "f.parquet", bloom_filter_options={"id": {"ndv": 3}})
    orc.write_table(table, folder / "f.bare")
    bloomcli.add(folder / "f.bare", ["id"], output=folder / "f.orc")
    shutil.copy(ROOT / "fixtures" / "mosaic" / "draft_types.mosaic", folder / "f.mosaic")
    return folder


def loaded_by(*commands: tuple[object, ...]) -> set[str]:
    """The modules that command lines have imported in a fresh interpreter."""
    lines = [[str(word) for word in words] for words in commands]
    program = (
        "import sys, io\n"
        "from bloomcli.cli import run\n"
        "kept, sys.stdout = sys.stdout, io.StringIO()\n"
        f"codes = [run(words) for words in {lines!r}]\n"
        "sys.stdout = kept\n"
        "print(max(codes), *sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    code, *names = done.stdout.split()
    assert int(code) <= 1, done.stderr  # 1: an answer of probe
    return set(names)


@pytest.mark.parametrize("name", ["f.parquet", "f.orc", "f.mosaic"])
def test_looking_at_a_local_file_imports_neither_pyarrow_nor_pyspark(name: str, filtered: Path) -> None:
    path, column = filtered / name, "big" if name == "f.mosaic" else "id"
    commands = [("inspect", path), ("probe", path, "1", "-c", column), ("dump", path, "-c", column, "-g", 0)]
    fold = [] if name == "f.orc" else [("fold", path, "--dry-run")]
    names = loaded_by(*commands, ("validate", path), *fold)
    assert not names & {"pyarrow", "pyspark", "numpy", "pandas", "fsspec", "rich", "duckdb", "mosaic"}
    assert not names & {"jinja2", "markdown_it", "PIL", "bloomcli.report.html"}


@pytest.mark.parametrize("name", ["f.parquet", "f.orc"])
def test_what_only_reads_starts_without_what_writes(name: str, filtered: Path) -> None:
    path = filtered / name
    names = loaded_by(("inspect", path), ("validate", path), ("validate", path, "--deep"), ("probe", path, "1"))
    assert "bloomcli.formats." + name.removeprefix("f.") + ".file" in names
    writing = {f"bloomcli.formats.{kind}.{module}" for kind in ("parquet", "orc") for module in ("plan", "splice")}
    assert not names & {
        "bloomcli.storage.local.atomic",
        "bloomcli.commands.change",
        "bloomcli.commands.add",
        *writing,
    }
    assert not names & {"thriftpy2", "tempfile", "secrets", "hashlib", "importlib.resources", "zoneinfo"}
    assert not names & {"concurrent.futures", "logging", "random"}


def test_help_imports_what_options_need_and_no_library_but_click() -> None:
    names = loaded_by(("--help",))
    assert not names & {"bloomcli.commands.add", "bloomcli.datasets", "bloomcli.formats.parquet.file"}
    assert "click" in names
    assert not names & {"pyarrow", "pyspark", "numpy", "rich", "thriftpy2", "xxhash", "mmh3"}


def test_the_package_itself_imports_nothing_heavy() -> None:
    program = "import sys; before = set(sys.modules); import bloomcli; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    names = {name.partition(".")[0] for name in done.stdout.split()}
    assert "bloomcli" in names
    assert names <= {"bloomcli", *sys.stdlib_module_names}

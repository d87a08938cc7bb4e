"""Runs the kernels' tests with a module that reports undefined behaviour and accesses outside of buffers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from support import checkout
from support.fuzzing import ROOT

pytestmark = pytest.mark.slow

FLAGS = ["-O0", "-g1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
"""Not optimized: compiling takes 6 seconds instead of 30, and nothing undefined is optimized away."""
REPORTS = ("AddressSanitizer", "runtime error:", "UndefinedBehaviorSanitizer")


PORTABLE = "-DBLOOM_PORTABLE"
"""Compiles what runs on processors without AVX2 and an instruction that counts bits."""


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    """A folder with the package, its module compiled with sanitizers, and the tests. In CI, the module is compiled on
    one day as for users, and on the next for any processor."""
    compiler = shutil.which("gcc")
    if compiler is None or not _library("libasan.so"):
        pytest.fail("needs gcc with libasan and libubsan")
    folder = tmp_path_factory.mktemp("build") / "sanitized"
    folder.mkdir()
    if (ROOT.parent / "shared").is_dir():  # the corpus, which tests look for next to the checkout
        (folder.parent / "shared").symlink_to(ROOT.parent / "shared")
    kept_out = shutil.ignore_patterns("*.pyc.*", "*.so", "*.c")
    shutil.copytree(ROOT / "bloomcli", folder / "bloomcli", ignore=kept_out)
    for name in ("tests", "fixtures", "pyproject.toml"):
        (folder / name).symlink_to(ROOT / name)
    source = folder / "compiled.c"
    if checkout.generated_is_current():
        shutil.copy(ROOT / checkout.GENERATED, source)
    else:
        _run([sys.executable, "-m", "cython", "-3", "bloomcli/kernels/compiled.pyx", "-o", str(source)], folder)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    include = sysconfig.get_path("include")
    target = folder / "bloomcli" / "kernels" / f"compiled{suffix}"
    flags = [*FLAGS, *([PORTABLE] if pytestconfig.getoption("seed") % 2 else [])]
    _run([compiler, "-shared", "-fPIC", *flags, f"-I{include}", str(source), "-o", str(target)], folder)
    return folder


def _library(name: str) -> str:
    """The path of a library of the compiler; empty if it has none."""
    found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
    return found if Path(found).is_file() else ""


def _run(command: list[str], folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, cwd=folder, env=os.environ | env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    return done


def _under_sanitizers(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the sanitizers, whose reports are on standard error."""
    return subprocess.run(
        [sys.executable, *args],
        cwd=folder,
        env=os.environ
        | {
            # libstdc++ too: ASan has to find what throws C++ exceptions when it starts, and pyarrow's come later
            "LD_PRELOAD": f"{_library('libasan.so')} {_library('libstdc++.so')}",
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
            "PYTHONMALLOC": "malloc",  # each object has a separate block, which isn't followed by another
        },
        capture_output=True,
        text=True,
    )


def test_the_kernels_tests_run_without_a_report(sanitized: Path, pytestconfig: pytest.Config) -> None:
    files = sorted(f"kernels/{p.name}" for p in Path(__file__).parent.glob("test_*.py") if p != Path(__file__))
    assert len(files) >= 5
    others = ["filters/test_split_block.py", "filters/test_kirsch_mitzenmacher.py"]
    # read whole files, and damaged ones, in compiled code
    others += ["formats/parquet/test_like_files.py"]
    done = _under_sanitizers(
        sanitized,
        "-m",
        "pytest",
        "-q",
        "-s",
        "-p",
        "no:cacheprovider",
        "--hypothesis-profile=quick",  # each access is checked: many values of one kind show nothing more
        f"--seed={pytestconfig.getoption('seed')}",
        "--deselect=tests/formats/parquet/test_like_files.py::test_many_values_in_files_alike_are_found_as_in_each_file_alone",
        "--deselect=tests/formats/parquet/test_like_files.py::test_a_damaged_copy_whose_column_is_decoded_at_once_is_ruled_out_only_where_opening_it_finds_nothing[options0]",
        *(f"tests/{name}" for name in files + others),
    )
    assert not any(name in done.stderr for name in REPORTS), done.stderr[:8000]
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:]


def test_mutated_files_run_without_a_report(sanitized: Path, pytestconfig: pytest.Config) -> None:
    """Damage that reaches the kernels: pages and streams below their compression. Each file is damaged in one of two
    ways, in CI in the other one on the next day; with --full in both."""
    turns = (0, 1) if pytestconfig.getoption("full") else (pytestconfig.getoption("seed") % 2,)
    script = """
import os, sys, tempfile
from pathlib import Path
sys.path[:0] = [os.getcwd(), os.getcwd() + "/tests"]
os.fsync = lambda _: None
import bloomcli, bloomcli.kernels
assert bloomcli.kernels.__file__.startswith(os.getcwd()), bloomcli.kernels.__file__
from bloomcli.errors import BloomError
from support import fuzzing
done = 0
with tempfile.TemporaryDirectory() as folder:
    for path in fuzzing.seeds():
        if path.suffix == ".mosaic" or path.name.startswith(("bomb", "rowindexstride")):
            continue
        for turn in sys.argv[1:]:
            data, _ = fuzzing.mutated(path.read_bytes(), path.suffix, f"sanitized {path.name} {turn}")
            case = Path(folder, "case" + path.suffix)
            case.write_bytes(data)
            try:
                bloomcli.add(case, ["*"], output=Path(folder, "out"), replace=True, overwrite=True, threads=1)
                bloomcli.validate(Path(folder, "out"), deep=True)
            except (BloomError, MemoryError):
                pass
            except Exception as error:
                print("another test's:", type(error).__name__, error)
            done += 1
print("tried", done)
"""
    done = _under_sanitizers(sanitized, "-c", script, *map(str, turns))
    assert not any(name in done.stderr for name in REPORTS), done.stderr[:8000]
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:]
    assert int(done.stdout.split()[-1]) > 100 * len(turns)


def test_a_stray_access_is_reported(sanitized: Path, tmp_path: Path) -> None:
    """The module in that folder reports an access outside of a buffer, and an undefined shift."""
    for name, body in {
        "beyond": "char *p = malloc(8); volatile int at = 8; p[at] = 1; return p[0];",
        "shift": "volatile int v = -1; return v << 3;",
    }.items():
        source = tmp_path / f"{name}.c"
        source.write_text(f"#include <stdlib.h>\nint {name}(void) {{ {body} }}\n")
        _run(["gcc", "-shared", "-fPIC", *FLAGS, str(source), "-o", str(tmp_path / f"{name}.so")], tmp_path)
        done = _under_sanitizers(
            sanitized, "-c", f"import ctypes; ctypes.CDLL({str(tmp_path / name)!r} + '.so').{name}()"
        )
        assert done.returncode != 0
        assert any(name in done.stderr for name in REPORTS)

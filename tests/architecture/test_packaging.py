"""The wheel works without a compiler, generated files are current, and README's commands are those of CI."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from support import checkout

from bloomcli.formats.orc import spec
from bloomcli.rules import RULES

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_wheel_works_in_a_venv_without_a_compiler(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    source = tmp_path / "source"
    checkout.copy(source)
    build = ["pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", tmp_path, source]
    compiler = os.environ | checkout.quick_compiler(tmp_path_factory)
    subprocess.run([sys.executable, "-m", *build], check=True, env=compiler)
    (wheel,) = tmp_path.glob("bloomcli-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert not [n for n in names if n.endswith((".c", ".pyx", ".pxi")) or n.startswith("tests")]
    assert sum(n.startswith("bloomcli/kernels/compiled.") and n.endswith((".so", ".pyd")) for n in names) == 1
    data = {f"bloomcli/formats/{name}" for name in ("parquet/parquet.thrift", "orc/orc.desc", "orc/zones.txt")}
    assert data | {"bloomcli/py.typed", "bloomcli/kernels/compiled.pyi"} <= set(names)
    pages = {f"bloomcli/rules/pages/{id_}.md" for id_ in RULES}
    templates = ROOT / "bloomcli" / "report" / "html" / "templates"
    pages |= {path.relative_to(ROOT).as_posix() for path in templates.iterdir()}
    assert f"{templates.relative_to(ROOT).as_posix()}/page.html" in pages
    assert pages <= set(names)
    for manual in (ROOT / "man").iterdir():
        section = manual.suffix[1:]
        assert any(name.endswith(f".data/data/share/man/man{section}/{manual.name}") for name in names), manual.name
    subprocess.run([sys.executable, "setup.py", "-q", "sdist", "-d", tmp_path], check=True, cwd=source, env=compiler)
    with tarfile.open(next(tmp_path.glob("bloomcli-*.tar.gz"))) as sdist:
        packed = {name.partition("/")[2] for name in sdist.getnames()}
    assert pages | data | {"bloomcli/kernels/compiled.pyx", "bloomcli/formats/orc/orc.proto"} <= packed
    docs = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*") if path.is_file()}
    assert docs | {f"man/{path.name}" for path in (ROOT / "man").iterdir()} <= packed
    folder = tmp_path / "venv"
    venv.create(folder)
    python = folder / "bin" / "python"
    # a compiler would fail, and dependencies come from here: nothing is downloaded
    env = os.environ | {"CC": "/bin/false", "CXX": "/bin/false"}
    env.pop("PYTHONPATH", None)  # Spark's tests set it, and pip would find this checkout installed there
    install = ["pip", "--python", python, "install", "-q", "--no-deps", wheel]
    subprocess.run([sys.executable, "-m", *install], check=True, env=env)
    env["PYTHONPATH"] = sysconfig.get_path("purelib")
    assert (folder / "share" / "man" / "man1" / "bloom-add.1").is_file()
    (script,) = re.findall(r"^```bash\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    empty = tmp_path / "empty"
    empty.mkdir()
    env["PATH"] = f"{python.parent}{os.pathsep}{env['PATH']}"
    subprocess.run(["bash", "-e"], input=script, check=True, env=env, cwd=empty, capture_output=True, text=True)
    assert [path.name for path in empty.iterdir()] == ["orders.parquet"]


def test_the_compiled_description_of_orc_is_current(tmp_path: Path) -> None:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from grpc_tools import protoc

    folder = ROOT / "bloomcli" / "formats" / "orc"
    out = tmp_path / "orc.desc"
    assert protoc.main(["protoc", f"-I{folder}", f"--descriptor_set_out={out}", "orc.proto"]) == 0
    (compiled,) = FileDescriptorSet.FromString(out.read_bytes()).file
    assert compiled.SerializeToString(deterministic=True) == (folder / "orc.desc").read_bytes()
    assert spec.value_of("StreamKind", "BLOOM_FILTER_UTF8") == 8


def test_readme_has_one_command_to_try_and_one_to_test_and_ci_runs_the_second() -> None:
    readme = (ROOT / "README.md").read_text()
    commands = re.findall(r"^```sh\n(.*?)\n```$", readme, re.MULTILINE | re.DOTALL)
    assert len(commands) == 2
    assert all("\n" not in command for command in commands)
    first, second = commands
    assert "bloom add fixtures/" in first
    assert "bloom probe" in first
    assert second in (ROOT / ".ci" / "run").read_text()
    assert "tests/check.py" in second


def test_the_version_is_one_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "bloomcli.version.__version__"}
    assert "cibuildwheel" in project["tool"]
    flags = (ROOT / "setup.py").read_text()
    assert "-O3" in flags
    assert "march" not in flags

"""The pre-commit hooks, run by pre-commit from a commit of this checkout in repositories that use them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from conftest import ROOT
from support import checkout

import bloomcli

EXAMPLE = ROOT / "docs" / "examples" / "pre-commit-config.yaml"


@dataclass(frozen=True)
class Hooks:
    """This checkout as a repository of hooks, and where pre-commit keeps what it builds of it."""

    source: Path
    revision: str
    home: Path
    compiler: Mapping[str, str]

    def run(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run pre-commit in a folder."""
        command = [sys.executable, "-m", "pre_commit", *arguments, "--color=never"]
        env = checkout.environment(PRE_COMMIT_HOME=str(self.home), **self.compiler)
        return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)

    def configured(self, folder: Path, text: str) -> None:
        """Configure pre-commit in a folder; the repository and revision in the text become these."""
        document = yaml.safe_load(text)
        (repo,) = document["repos"]
        repo |= {"repo": str(self.source), "rev": self.revision}
        (folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump(document))
        checkout.git(folder, "add", ".pre-commit-config.yaml")


@pytest.fixture(scope="session")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Hooks:
    """Built by the first hook that runs, once: `pre-commit try-repo` would build for every run."""
    source = checkout.copy(tmp_path_factory.mktemp("hooks") / "bloomcli")
    compiler = checkout.quick_compiler(tmp_path_factory)
    return Hooks(source, checkout.commit(source), tmp_path_factory.mktemp("pre-commit"), compiler)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with a sound file, a broken one, and files that are none of the hook's business."""
    root = tmp_path / "repository"
    (root / "data").mkdir(parents=True)
    sound, broken = root / "data" / "sound file.parquet", root / "data" / "broken.parquet"
    pq.write_table(pa.table({"id": range(3000), "name": [f"n{i}" for i in range(3000)]}), tmp_path / "plain")
    bloomcli.add(tmp_path / "plain", ["id"], output=sound)
    (found,) = bloomcli.inspect(sound).filters
    start = found.offset + found.header_bytes
    data = sound.read_bytes()
    broken.write_bytes(data[:start] + bytes(found.bitset_bytes) + data[start + found.bitset_bytes :])
    (root / "--deep.parquet").write_bytes(data)
    (root / "notes.txt").write_text("no data\n")
    (root / "broken.parquet.md").write_bytes(broken.read_bytes())
    (root / "bloom.toml").write_text('require = ["id"]\n')
    checkout.commit(root)
    return root


def test_manifest_and_example_are_what_pre_commit_takes() -> None:
    for command, path in (("validate-manifest", ROOT / ".pre-commit-hooks.yaml"), ("validate-config", EXAMPLE)):
        done = subprocess.run([sys.executable, "-m", "pre_commit", command, path], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, ""), done.stdout
        other = "validate-config" if command == "validate-manifest" else "validate-manifest"
        assert subprocess.run([sys.executable, "-m", "pre_commit", other, path], capture_output=True).returncode == 1
    (repo,) = yaml.safe_load(EXAMPLE.read_text())["repos"]
    assert repo["rev"] == f"v{bloomcli.__version__}"
    ids = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    assert {hook["id"] for hook in repo["hooks"]} == ids


@pytest.mark.slow
def test_the_example_passes_sound_files_and_fails_on_broken_ones(hooks: Hooks, repository: Path) -> None:
    hooks.configured(repository, EXAMPLE.read_text())
    done = hooks.run(repository, "run", "--files", "data/sound file.parquet", "notes.txt")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "bloom validate...." in done.stdout
    assert "Passed" in done.stdout
    assert "(dataset)" not in done.stdout, "it is for pushes"

    done = hooks.run(repository, "run", "--all-files")
    assert done.returncode == 1
    assert "exit code: 1" in done.stdout
    assert "error filter-all-zero" in done.stdout
    assert "data/broken.parquet: no bit is set" in done.stdout
    assert "3 files: 3 row groups, 3 filters" in done.stdout
    assert re.search(r"^policy +\S*bloom\.toml$", done.stdout, re.MULTILINE), "it is found from the top"

    (repository / "data" / "broken.parquet").unlink()
    done = hooks.run(repository, "run", "--all-files", "--hook-stage", "pre-push")
    assert done.returncode == 0, done.stdout
    assert "values   3,000" in done.stdout, "its report is shown though it passed"
    assert "1 file: 1 row group, 1 filter" in done.stdout

    done = hooks.run(repository, "run", "bloom-validate", "--files", "notes.txt", "broken.parquet.md", "bloom.toml")
    assert done.returncode == 0
    assert "(no files to check)Skipped" in done.stdout, "they are none of its business"

    (repository / "bloom.toml").write_text('require = ["id"]\nexclude = ["data/*"]\n')
    done = hooks.run(repository, "run", "bloom-validate", "--verbose", "--files", "data/sound file.parquet")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing to check: 1 file excluded by the policy" in done.stdout


@pytest.mark.slow
def test_a_commit_of_a_broken_file_is_stopped(hooks: Hooks, repository: Path) -> None:
    hooks.configured(repository, EXAMPLE.read_text())
    assert hooks.run(repository, "install").returncode == 0

    def commit() -> subprocess.CompletedProcess[str]:
        env = checkout.environment(PRE_COMMIT_HOME=str(hooks.home))
        return subprocess.run(["git", "commit", "-m", "x"], cwd=repository, env=env, capture_output=True, text=True)

    checkout.git(repository, "mv", "data/broken.parquet", "data/renamed.parquet")
    done = commit()
    assert done.returncode == 1
    assert "filter-all-zero" in done.stdout + done.stderr
    assert "data/renamed.parquet: not ok: 1 error" in done.stdout + done.stderr
    checkout.git(repository, "rm", "-q", "-f", "data/renamed.parquet")
    checkout.git(repository, "mv", "data/sound file.parquet", "data/moved.parquet")
    assert commit().returncode == 0


@pytest.mark.slow
def test_the_hooks_take_arguments(hooks: Hooks, repository: Path) -> None:
    hooks.configured(
        repository,
        """
        repos:
          - hooks:
              - id: bloom-validate
                args: [--require, name, --]
                files: ^--deep
              - id: bloom-validate-dataset
                name: a folder
                args: [data, --no-policy, --deep]
              - id: bloom-validate-dataset
                name: nothing
                alias: nothing
        """,
    )
    done = hooks.run(repository, "run", "bloom-validate", "--all-files")
    assert done.returncode == 1
    assert "--deep.parquet: not ok" in done.stdout
    assert "filter-required" in done.stdout
    (repository / "data" / "new.parquet").write_bytes((repository / "--deep.parquet").read_bytes())
    done = hooks.run(repository, "run", "bloom-validate-dataset", "--files", "notes.txt")
    folder, _, nothing = done.stdout.partition("nothing...")
    assert "data/broken.parquet" in folder
    assert "3 files: 3 row groups" in folder, "committed or not"
    assert "exit code: 1" in folder
    assert "exit code: 2" in nothing
    assert "Missing argument" in nothing

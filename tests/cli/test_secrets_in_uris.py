"""No output of any command has the password or the signature of a URI, however the URI is misspelled."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from support.cli import Result
from support.tables import write

from bloomcli import cli
from bloomcli.model.paths import shown, without_secrets

_SECRETS: Final = ("hunter2", "c2VjcmV0")
_URIS: Final = (
    "https://user:hunter2/c2VjcmV0@127.0.0.1:1/x.parquet",
    "https://user:hunter2@127.0.0.1:1/x.parquet?X-Signature=c2VjcmV0",
    "https://user:hunter2/x.parquet",
    "https://user:1/hunter2@host/x.parquet",
    "https://user:p@hunter2/c2VjcmV0@host/x.parquet",
    "https://user:hunter2@[x/x?c2VjcmV0",
    "https:/user:hunter2@host/x.parquet?sig=c2VjcmV0",
    "https//user:hunter2@host/x.parquet?sig=c2VjcmV0",
    "HTTPS://user:hunter2@host/x.parquet?c2VjcmV0",
    "ftp://user:hunter2@host/x.parquet",
    "ftp://user:hunter2/c2VjcmV0@host/x.parquet",
    "hdfs://user:hunter2/c2VjcmV0@host:8020/x.parquet",
    "az://user:hunter2@lake/x.parquet",
    "az://user:hunter2/c2VjcmV0@lake/x.parquet",
    "abfss://lake:hunter2@127.0.0.1/x.parquet",
    "abfss://user:hunter2/c2VjcmV0@host/x.parquet",
    "gs://user:hunter2@lake/x.parquet",
    "s3://KEY:hunter2@lake/x.parquet",
    "s3://KEY:hunter2/c2VjcmV0@lake/x.parquet",
    "s3a://KEY:hunter2/lake/x.parquet",
)


def _commands(uri: str, folder: Path) -> list[list[str]]:
    """Command lines of every command, each with the URI in one of its places."""
    here, listed, index = str(folder / "here.parquet"), str(folder / "list.txt"), str(folder / "here.bloom-index")
    (folder / "list.txt").write_text(f"{uri}\n{here}\n")
    new = str(folder / "new")
    return [
        ["inspect", uri],
        ["inspect", uri, here],
        ["inspect", "--files-from", listed],
        ["inspect", "--files-from", uri],
        ["inspect", here, "--report", f"html={folder / 'report.html'}"],
        ["inspect", here, "--report", f"html={uri}"],
        ["probe", uri, "-c", "id", "42"],
        ["probe", here, uri, "-c", "id", "-v", "42"],
        ["probe", here, "-c", "id", "--values-from", uri],
        ["find", "42", uri, "-c", "id"],
        ["find", "42", here, uri, "-c", "id"],
        ["find", "42", here, "-c", "id", "--index", uri],
        ["find", "42", here, "-c", "id", "-o", uri],
        ["advise", uri],
        ["advise", here, uri],
        ["advise", here, "--policy", uri],
        ["add", uri, "-c", "id", "--in-place"],
        ["add", here, uri, "-c", "id", "--in-place", "--dry-run"],
        ["add", here, "-c", "id", "-o", uri],
        ["add", here, "-c", "id", "-o", f"{uri}/"],
        ["add", here, "--policy", uri, "-o", new],
        ["add", here, "--table-schema", uri, "-o", new],
        ["remove", uri, "-c", "id", "--in-place"],
        ["fold", uri, "-c", "id", "--fpp", "0.1", "-o", new],
        ["repair", uri, "--in-place"],
        ["repair", here, "--add", "page-index", "-o", uri],
        ["validate", uri],
        ["validate", "--files-from", listed, "--report", f"sarif={folder / 'report.sarif'}"],
        ["validate", "--files-from", listed, "--report", f"junit={folder / 'report.xml'}"],
        ["validate", "--files-from", listed, "--report", f"html={folder / 'report2.html'}"],
        ["validate", here, "--policy", uri],
        ["validate", here, "--baseline", uri],
        ["validate", here, "--table-schema", uri],
        ["validate", uri, "--init", "--policy", str(folder / "bloom.toml")],
        ["trial", uri, "-c", "id", "-v", "42"],
        ["dump", uri, "-c", "id"],
        ["index", "build", uri, "-c", "id", "-o", index],
        ["index", "build", here, uri, "-c", "id", "-o", index],
        ["index", "build", here, "-c", "id", "-o", uri],
        ["index", "update", uri, "-i", index],
        ["index", "update", here, "-i", uri],
        ["index", "inspect", uri],
        [uri],
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file. Nothing waits, and no request leaves this machine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setenv("BLOOM_DEBUG", "1")
    monkeypatch.setenv("AZURE_STORAGE_ANON", "true")
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
        monkeypatch.setenv(name.upper(), "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    write(tmp_path / "here.parquet", pa.table({"id": pa.array(range(1000), pa.int64())}), rows=500)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("uri", _URIS)
def test_no_command_shows_a_secret_of_a_uri(uri: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """As text and as JSON in turn: which of them a command writes, doesn't depend on the URI."""
    problems = []
    commands = _commands(uri, folder)
    assert {command[0] for command in commands} - {uri} == set(cli.COMMANDS)
    for number, command in enumerate(commands):
        form = ["--format", "json"] if (number + _URIS.index(uri)) % 2 else []
        code = cli.run([*command, *form])
        done = Result(code, *capfd.readouterr())
        if code not in {0, 1, 2, 3, 4}:
            problems.append(f"{command}: exit {code}: {done.err[-500:]}")
        shown_by = [secret for secret in _SECRETS if secret in done.out + done.err]
        problems += [f"{command}: {secret}: {done.out}{done.err}" for secret in shown_by]
        for path in folder.rglob("*"):
            if path.is_file() and path.name != "list.txt":
                data = path.read_bytes()
                problems += [f"{command}: {secret} in {path}" for secret in _SECRETS if secret.encode() in data]
    assert not problems, "\n".join(dict.fromkeys(problems))


@pytest.mark.parametrize("uri", _URIS)
def test_a_shown_uri_has_no_secret_and_is_shown_the_same_again(uri: str) -> None:
    text = shown(uri)
    assert not any(secret in text for secret in _SECRETS)
    assert shown(text) == text
    assert not any(secret in without_secrets(f"can't open {uri!r}, host {uri[8:]}", uri) for secret in _SECRETS)


@pytest.mark.parametrize(
    "path",
    [
        "lake/a:b@c?d=e.parquet",
        "/lake/a@b.parquet",
        "C:/lake/x.parquet",
        "file:///lake/a:b@c.parquet",
        "s3://lake/a@b.parquet",
        "s3://lake/year=?/x?.parquet",
        "s3://arn:aws:s3:eu-west-1:123:accesspoint/lake/x.parquet",
        "abfss://lake@account.dfs.core.windows.net/x.parquet",
        "hdfs://user@namenode:8020/a@b.parquet",
        "https://host.example:8443/a@b.parquet",
        "http://localhost:8080/a@b.parquet",
        "http://[::1]:8080/x.parquet",
    ],
)
def test_a_path_without_secrets_is_shown_as_it_is(path: str) -> None:
    assert shown(path) == path
    assert json.loads(json.dumps(shown(path))) == path

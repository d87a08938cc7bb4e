"""Listings of paths, directories, patterns and lists: each file once, with the relative path of its copy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, need

from bloomcli.errors import UnreadableError, UnsupportedError
from bloomcli.storage.base import FileEntry
from bloomcli.storage.listing import expand, is_dataset, no_files
from bloomcli.storage.local.paths import local_path
from bloomcli.storage.names import read_list


def touch(root: Path, *names: str) -> Path:
    """Files of three bytes."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"abc")
    return root


def relatives(*paths: object) -> list[str]:
    """The relative paths of the copies of listed files."""
    return [item.relative for item in expand([str(p) for p in paths])]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A directory with partitions, hidden names and brackets."""
    return touch(
        tmp_path / "lake",
        "a.parquet",
        "b[1].orc",
        "_SUCCESS",
        "_metadata",
        ".a.parquet.crc",
        "_delta_log/0.checkpoint.parquet",
        ".git/x.parquet",
        "_p=1/c.parquet",
        "year=2024/month=2/d.parquet",
        "year=2024/_SUCCESS",
        "year=2023/e.parquet",
    )


VISIBLE = ["a.parquet", "b[1].orc", "_p=1/c.parquet", "year=2023/e.parquet", "year=2024/month=2/d.parquet"]


def test_a_directory_gives_its_files_in_order_and_leaves_hidden_names_alone(lake: Path) -> None:
    found = expand([str(lake)])
    assert [item.relative for item in found] == VISIBLE
    changed = (lake / "a.parquet").stat().st_mtime_ns
    assert found[0] == FileEntry(
        path=str(lake / "a.parquet"), size=3, relative="a.parquet", walked=True, mtime_ns=changed
    )


def test_a_named_path_is_listed_even_if_its_name_is_hidden(lake: Path) -> None:
    (found,) = expand([str(lake / "_metadata")])
    changed = (lake / "_metadata").stat().st_mtime_ns
    assert found == FileEntry(
        path=str(lake / "_metadata"), size=3, relative="_metadata", walked=False, mtime_ns=changed
    )
    assert relatives(lake / "_delta_log", lake / ".git") == ["0.checkpoint.parquet", "x.parquet"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.parquet", ["a.parquet"]),
        ("?.parquet", ["a.parquet"]),
        ("[a-c].parquet", ["a.parquet"]),
        ("*", VISIBLE),
        ("**/*.parquet", [n for n in VISIBLE if n != "b[1].orc"]),
        ("**", VISIBLE),
        ("year=*", VISIBLE[3:]),
        ("year=*/", VISIBLE[3:]),
        ("year=2024/*/*.parquet", VISIBLE[4:]),
        ("_*", ["_SUCCESS", "0.checkpoint.parquet", "_metadata", "_p=1/c.parquet"]),
        ("_delta_log/*", ["_delta_log/0.checkpoint.parquet"]),
        (".g*/*", [".git/x.parquet"]),
    ],
)
def test_a_pattern_matches_hidden_names_only_if_it_spells_them(lake: Path, pattern: str, expected: list[str]) -> None:
    names = [Path(n).name for n in expected]
    found = expand([str(lake / pattern) + ("/" if pattern.endswith("/") else "")])
    assert sorted(Path(item.path).name for item in found) == sorted(names)


def test_copies_of_a_patterns_matches_and_of_named_partitions_keep_them(lake: Path) -> None:
    for pattern in ("year=*", "*", "**", "**/*.parquet", "year=2024/*", "year=2023/*.parquet"):
        for item in expand([str(lake / pattern)]):
            assert item.relative == str(Path(item.path).relative_to(lake)), pattern
    assert relatives(lake / "year=2023", lake / "year=2024") == VISIBLE[3:]
    assert relatives(lake / "year=2024/month=2") == [VISIBLE[4]]
    assert relatives(lake / "year=2024/month=2/d.parquet", lake / "a.parquet") == [VISIBLE[4], "a.parquet"]


def test_relative_paths_and_patterns_mean_the_same(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lake)
    assert relatives(".") == VISIBLE
    assert sorted(relatives("*")) == sorted(relatives("./**")) == sorted(VISIBLE)
    monkeypatch.chdir(lake / "year=2024")
    assert relatives("month=2/d.parquet") == ["month=2/d.parquet"]
    assert relatives("../year=2023/*") == ["year=2023/e.parquet"]


def test_brackets_in_a_real_name_are_no_pattern(lake: Path) -> None:
    name = str(lake / "b[1].orc")
    assert not is_dataset([name])
    assert [item.path for item in expand([name])] == [name]
    touch(lake, "x[y]/f.parquet")
    assert is_dataset([str(lake / "x[y]")])
    assert relatives(lake / "x[y]") == ["f.parquet"]


def test_a_file_is_listed_once_however_it_is_named(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lake.parent)
    (lake.parent / "link").symlink_to(lake)
    one = str(lake / "a.parquet")
    found = expand(
        [one, str(lake), "lake/a.parquet", "./lake//a.parquet", f"file://{one}", "link/a.parquet", "lake/*"]
    )
    assert found[0].path == one
    assert len(found) == len(VISIBLE)


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "\0*", "x" * 300 + "*"])
def test_names_that_no_file_can_have_are_listed_or_refused_as_unreadable(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    is_dataset([path])
    try:
        assert [item.size for item in expand([path])] == [-1]
    except UnreadableError as error:
        assert "matches no file" in str(error)


def test_a_pattern_that_matches_nothing_is_an_error(lake: Path) -> None:
    with pytest.raises(UnreadableError, match=r"matches no file") as caught:
        expand([str(lake / "*.avro")])
    assert caught.value.exit_code == 3
    with pytest.raises(UnreadableError, match=r"matches no file"):
        expand([str(lake / "year=2024/_S?")])


@pytest.mark.parametrize(
    ("path", "said"), [("nothing*", "the pattern matches no file"), ("gopher://x/y/", "can't be listed here")]
)
def test_a_path_that_cannot_be_listed_does_not_stop_the_others(lake: Path, path: str, said: str) -> None:
    path = path if ":" in path else str(lake / path)
    found = expand([str(lake / "a.parquet"), path, str(lake / "year=2023")])
    assert [i.relative for i in found if i.problem is None] == ["a.parquet", "year=2023/e.parquet"]
    (bad,) = (i for i in found if i.problem is not None)
    assert (bad.path, bad.walked) == (path, False)
    assert said in str(bad.problem)
    with pytest.raises(type(bad.problem), match=said):  # type: ignore[arg-type]
        expand([path, path])


def test_links_to_files_are_files_and_links_to_directories_are_reported_not_followed(tmp_path: Path) -> None:
    root = touch(tmp_path / "root", "a.parquet")
    outside = touch(tmp_path / "outside", "b.parquet")
    (root / "link.parquet").symlink_to(outside / "b.parquet")
    (root / "up").symlink_to(tmp_path)
    (root / "dead.parquet").symlink_to(tmp_path / "nowhere")
    found = expand([str(root)])
    assert {item.relative: item.size for item in found if not item.skipped} == {
        "a.parquet": 3,
        "dead.parquet": -1,
        "link.parquet": 3,
    }
    assert [item.path for item in found if "a link to a directory" in (item.skip_reason or "")] == [str(root / "up")]
    assert relatives(root / "up" / "outside") == ["b.parquet"]


def test_a_directory_that_cannot_be_read_is_an_error_and_not_an_empty_one(tmp_path: Path) -> None:
    need(os.name == "posix" and (os.geteuid() != 0 or Path("/proc/self/setgroups").exists()), "users of POSIX")
    root = touch(tmp_path, "open/a.parquet", "closed/b.parquet")
    (root / "closed").chmod(0)
    program = (
        "import os, sys\n"
        "import hashlib  # another user may not be able to read Python's own modules\n"
        "from bloomcli.storage.listing import expand, is_dataset\n"
        "if os.geteuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "from bloomcli.errors import UnreadableError\n"
        "for look in is_dataset, expand:\n"
        "    try: look([sys.argv[1] + '/closed/b.parquet'])\n"
        "    except UnreadableError as error: print(error.message)\n"
        "print([i.relative for i in expand([sys.argv[1] + '/open/a.parquet', sys.argv[1] + '/closed/b.parquet'])])\n"
        "for path in sys.argv[1], sys.argv[1] + '/closed':\n"
        "    try: print([(i.relative, str(i.problem and i.problem.message)) for i in expand([path])])\n"
        "    except UnreadableError as error: print(error.message)\n"
    )
    for folder in (root, *root.parents[:3]):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/tmp"):
            folder.chmod(0o755)
    try:
        done = subprocess.run([sys.executable, "-c", program, str(root)], cwd=ROOT, capture_output=True, text=True)
    finally:
        (root / "closed").chmod(0o755)
    assert done.stderr == ""
    said = f"{root}/closed: the directory can't be read: permission denied"
    looked = f"{root}/closed/b.parquet: its status can't be read: permission denied"
    assert done.stdout.splitlines() == [looked] * 2 + [
        "['a.parquet', 'b.parquet']",
        str([("closed", said), ("open/a.parquet", "None")]),
        said,
    ]


def test_file_uris_are_local_paths_directories_and_patterns_too(tmp_path: Path) -> None:
    root = touch(tmp_path / "a b", "x.parquet", "y=1/z.parquet")
    uri = root.as_uri()
    assert "%20" in uri
    assert is_dataset([uri])
    assert not is_dataset([f"{uri}/x.parquet"])
    assert [i.path for i in expand([uri])] == [str(root / "x.parquet"), str(root / "y=1/z.parquet")]
    assert relatives(f"{uri}/*.parquet") == ["x.parquet"]
    assert expand([f"file://localhost{root}/x.parquet"]) == expand([str(root / "x.parquet")])
    assert local_path(f"file:{root}") == str(root)


@pytest.mark.parametrize(
    ("start", "name"),
    [
        ("file:", "x#1.parquet"),
        ("file://", "x?2"),
        ("file://localhost", "p=a%3Ab"),
        ("file:", "a b"),
        ("file:", "100%"),
    ],
)
def test_the_text_after_the_scheme_of_a_file_uri_is_the_unchanged_name(tmp_path: Path, start: str, name: str) -> None:
    touch(tmp_path, name, "x", "p=a:b")
    assert local_path(f"{start}{tmp_path}/{name}") == str(tmp_path / name)
    assert [i.path for i in expand([f"{start}{tmp_path}/{name}"])] == [str(tmp_path / name)]


def test_a_file_uri_is_decoded_only_if_no_file_has_the_encoded_name(tmp_path: Path) -> None:
    touch(tmp_path, "a b/x#1.parquet", "p=a%3Ab/f.parquet")
    uri = f"file:{tmp_path}"
    assert local_path((tmp_path / "a b/x#1.parquet").as_uri()) == str(tmp_path / "a b/x#1.parquet")
    assert relatives(f"{uri}/p=a%3Ab/*.parquet") == ["p=a%3Ab/f.parquet"]
    assert relatives(f"{uri}/*%3A*") == ["p=a%3Ab/f.parquet"]
    assert local_path(f"{uri}/new%20name") == f"{tmp_path}/new%20name"
    touch(tmp_path, "a%20b/x#1.parquet")
    assert local_path(f"{uri}/a%20b/x#1.parquet") == f"{tmp_path}/a%20b/x#1.parquet"


def test_a_file_uri_of_another_machine_stays_unchanged() -> None:
    (found,) = expand(["file://elsewhere/x.parquet"])
    assert (found.path, found.size) == ("file://elsewhere/x.parquet", -1)
    assert local_path("file://[bad/x") == "file://[bad/x"


def test_uris_that_cannot_be_listed_here_say_what_to_do() -> None:
    hints = {"gopher://x/y/": "mount it", "hdfs://localhost:1/x/": "mount it", "hdfs://b/y=*/x": "name the directory"}
    for uri, hint in hints.items():
        assert is_dataset([uri])
        with pytest.raises(UnsupportedError) as caught:
            expand([uri])
        assert caught.value.exit_code == 4
        assert hint in str(caught.value.hint)
        assert "\n" not in caught.value.message


def test_several_files_directories_and_patterns_are_datasets_one_file_is_not(lake: Path) -> None:
    one = str(lake / "a.parquet")
    for path in (one, str(lake / "nowhere"), "hdfs://localhost:1/x.parquet"):
        assert not is_dataset([path]), path
    for paths in ([one, one], [], [lake], [lake / "*"], ["hdfs://localhost:1/table/"], ["s3://bucket/table/"]):
        assert is_dataset([*map(str, paths)]), paths


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("a\nb\n", ["a", "b"]),
        ("a\r\n\r\nb", ["a", "b"]),
        (" a \n\n\n#b\n", [" a ", "#b"]),
    ],
)
def test_a_list_has_a_path_per_line_unchanged(text: str, expected: list[str]) -> None:
    assert list(read_list(text.splitlines(keepends=True))) == expected
    assert list(read_list([], ["a\n", "b"])) == ["a\n", "b"]


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([], "there are no files"),
        (["lake"], "lake: the directory holds no files"),
        (["a", "b"], "the directories hold no files: a, b"),
        (["a", "b", "c", "d"], "the directories hold no files: a, b, c and 1 other"),
        (["https://me:secret@host/", "b"], "the directories hold no files: https://host/, b"),
    ],
)
def test_directories_without_files_are_named(paths: list[str], message: str) -> None:
    assert no_files(paths).message == message


def test_a_directory_without_files_is_a_row_among_others_and_empty_alone(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "a.parquet").touch()
    empty, other, lake = (str(tmp_path / name) for name in ("empty", "other", "lake"))
    found = expand([empty, lake, empty])
    assert [(item.path, item.skip_reason) for item in found] == [
        (empty, "a directory without files"),
        (f"{lake}/a.parquet", None),
    ]
    assert not expand([empty])
    assert not expand([empty, other])
    with pytest.raises(UnreadableError, match="the pattern matches no file"):
        expand([empty, f"{lake}/*.orc"])

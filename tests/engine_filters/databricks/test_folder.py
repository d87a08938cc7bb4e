"""A folder of Databricks' filter indexes is reported where it is, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import footers, thrift
from support.golden import ENGINE_FILTERS
from support.object_stores import SCHEME, MemoryObjects

import bloomcli
from bloomcli.storage import registry
from bloomcli.storage.lookups import shared
from bloomcli.storage.objects.client import AccessDenied


def test_inspect_and_validate_report_the_folder_and_what_vacuum_does_to_it(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes((ENGINE_FILTERS / "hudi-simple.parquet").read_bytes())
    assert "_delta_index" not in dict(bloomcli.inspect(path).details)
    assert bloomcli.validate(path).findings == ()
    (tmp_path / "_delta_index").mkdir()
    assert "VACUUM of open-source Delta deletes" in dict(bloomcli.inspect(path).details)["_delta_index"]
    (found,), (of_folder,) = bloomcli.validate(path).findings, bloomcli.validate(tmp_path).findings
    assert (found.id, found.message) == ("filter-not-checked", of_folder.message)
    assert "VACUUM of open-source Delta deletes" in found.message


def written_by(name: str) -> bytes:
    """A file whose footer names this writer."""

    def edit(metadata: thrift.Fields) -> None:
        metadata[6] = (thrift.BINARY, name.encode())

    return footers.edited((ENGINE_FILTERS / "hudi-simple.parquet").read_bytes(), edit)


@pytest.mark.parametrize(
    ("writer", "lookups"),
    [
        ("parquet-mr version 1.12.3-databricks-0002 (build 2484a95dbe16a0023e3eb29c201f99ff9ea771ee)", 1),
        ("parquet-mr compatible Photon version 0.2 (build 16.4)", 1),
        ("parquet-mr version 1.13.1 (build db4183109d5b734ec5930d870cdae161e408ddba)", 0),
    ],
)
def test_in_a_store_only_validate_looks_once_per_directory_and_only_beside_files_of_databricks(
    monkeypatch: pytest.MonkeyPatch, writer: str, lookups: int
) -> None:
    store = MemoryObjects()
    monkeypatch.setitem(registry.known_stores(), SCHEME, store)
    uris = [f"{SCHEME}://lake/t/p={part}/{number}.parquet" for part in "ab" for number in range(2)]
    for uri in uris:
        store.client.store(uri, written_by(writer))
    store.client.store(f"{SCHEME}://lake/t/p=a/_delta_index/0.parquet.index.v1.parquet", b"PAR1")

    def listed() -> list[str]:
        found = [one.key for one in store.client.requests if one.kind == "LIST"]
        store.client.requests.clear()
        return found

    for uri in uris:
        bloomcli.inspect(uri)
        bloomcli.probe(uri, ["1"], column="id")
    assert listed() == []
    with shared():
        found = [
            [one.message for one in bloomcli.validate(uri).findings if one.id == "filter-not-checked"] for uri in uris
        ]
    assert listed() == ["t/p=a/", "t/p=b/"][: 2 * lookups]
    assert [len(one) for one in found] == [lookups, lookups, 0, 0]
    assert all("VACUUM of open-source Delta deletes" in one for some in found for one in some)

    def deny(uri: str) -> None:
        raise AccessDenied("access denied", path=uri)

    store.client.on_request = lambda request: deny(request.key) if request.kind == "LIST" else None
    assert [one.id for one in bloomcli.validate(uris[0]).findings if one.id == "filter-not-checked"] == []

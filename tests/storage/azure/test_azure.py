"""Blobs of Azurite: uploads, the properties that a new blob keeps, refusals, and error messages."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from azure.storage.blob import ContentSettings
from conftest import need
from support.azure_place import AzurePlace
from support.servers import clients, running
from support.servers.dialects import Azure
from support.servers.faults import Action, Fault
from support.servers.proxy import Proxy
from support.stores import append

from bloomcli.errors import BloomError, UnreadableError, UsageError, WriteError
from bloomcli.storage import traffic

pytestmark = pytest.mark.servers

MIB = 1 << 20


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> AzurePlace:
    need(running.installed("azurite"), "Azurite: python tests/support/servers/install.py azurite")
    return AzurePlace(running.azurite(), monkeypatch)


@pytest.fixture
def proxy(place: AzurePlace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A proxy by which the store sees the server."""
    server = running.azurite()
    with Proxy(server.port, Azure()) as found:
        for name, value in clients.azure_environment(server, found.url).items():
            monkeypatch.setenv(name, value)
        yield found


def test_only_the_block_with_the_end_is_uploaded_again(place: AzurePlace) -> None:
    data = bytes(range(256)) * (4096 * 9)
    place.put_in_blocks("data.bin", data, MIB)
    with traffic.measured() as meter:
        append(place, "data.bin", b"new end", cut=100)
    assert place.get("data.bin") == data[:-100] + b"new end"
    assert meter.total.bytes_uploaded < MIB + 100
    assert meter.total.bytes_downloaded < 2 * MIB
    assert meter.total.bytes_copied_by_store == len(data) - MIB
    assert meter.total.requests <= 12
    names = [block.id for block in place.blob("data.bin").get_block_list("committed")[0]]
    assert len(names) == 9


def test_a_blob_without_blocks_streams_through(place: AzurePlace) -> None:
    data = bytes(range(256)) * (4096 * 20)
    place.blob("data.bin").upload_blob(data)
    assert place.blob("data.bin").get_block_list("committed")[0] == []
    with traffic.measured() as meter:
        append(place, "data.bin", b"new end")
    assert place.get("data.bin") == data + b"new end"
    assert meter.total.bytes_uploaded == len(data) + 7
    with traffic.measured() as meter:  # it has blocks now
        append(place, "data.bin", b"!")
    assert place.get("data.bin") == data + b"new end!"
    assert meter.total.bytes_uploaded == 1


def test_requests_and_bytes_are_those_that_the_server_sees(place: AzurePlace, proxy: Proxy) -> None:
    place.put_in_blocks("data.bin", bytes(3 * MIB), MIB)
    with traffic.measured() as meter:
        append(place, "data.bin", b"new end")
    assert meter.total.requests == len(proxy.recorded)
    assert proxy.kinds()["Get Blob Properties"] == 2, "when it is opened, and for what carries over"
    blocks = proxy.of_kind("Put Block")
    assert meter.total.bytes_uploaded == sum(request.sent for request in blocks) == 7
    assert meter.total.bytes_downloaded == sum(request.received for request in proxy.of_kind("Get Blob"))
    proxy.forget()
    with proxy.injecting(Fault(Action.ERROR_503, "Put Block")), traffic.measured() as meter:
        append(place, "data.bin", b"new end")
    assert meter.total.requests == len(proxy.recorded), "the retry counts too"


@pytest.mark.parametrize("target", [None, "copy.bin"], ids=["in place", "copy"])
def test_headers_metadata_tags_and_tier_stay(place: AzurePlace, target: str | None) -> None:
    place.put("data.bin", bytes(5000))
    blob = place.blob("data.bin")
    settings = ContentSettings("application/x-parquet", "identity", "de", "inline", "no-cache", bytearray(16))
    blob.set_http_headers(settings)
    blob.set_blob_metadata({"owner": "lake", "purpose": "tests"})
    blob.set_blob_tags({"project": "bloom", "kind": "orders"})
    blob.set_standard_blob_tier("Cool")
    append(place, "data.bin", b"new end", target=target)
    new: Any = place.blob(target or "data.bin").get_blob_properties()
    found = new.content_settings
    assert (found.content_type, found.content_language) == ("application/x-parquet", "de")
    assert (found.content_disposition, found.cache_control) == ("inline", "no-cache")
    assert found.content_md5 is None, "it is another content"
    assert new.metadata == {"owner": "lake", "purpose": "tests"}
    assert place.blob(target or "data.bin").get_blob_tags() == {"project": "bloom", "kind": "orders"}
    assert new.blob_tier == "Cool"


def test_a_lease_the_archive_tier_and_other_kinds_of_blobs_are_refused_by_name(place: AzurePlace) -> None:
    place.put("data.bin", bytes(5000))
    lease = place.blob("data.bin").acquire_lease()
    with pytest.raises(UsageError, match="it has a lease") as caught:
        append(place, "data.bin", b"new end")
    assert caught.value.hint
    with pytest.raises(UsageError, match="it has a lease"):
        place.store.check_output(place.path("data.bin"), overwrite=True)
    lease.release()
    place.blob("log.bin").create_append_blob()
    place.blob("log.bin").append_block(b"line")
    with pytest.raises(UsageError, match="page and append blobs can't be replaced"):
        append(place, "log.bin", b"new end")


@pytest.mark.parametrize("target", [None, "copy.bin"], ids=["in place", "copy"])
def test_a_blob_in_the_archive_tier_is_an_error_with_the_command_that_moves_it(
    place: AzurePlace, target: str | None
) -> None:
    place.put("it's data.bin", bytes(5000))
    place.blob("it's data.bin").set_standard_blob_tier("Archive")
    with pytest.raises((UsageError, UnreadableError), match="Archive tier") as caught:
        append(place, "it's data.bin", b"new end", target=target)
    assert place.names() == {"it's data.bin"}
    assert place.blob("it's data.bin").get_blob_properties().blob_tier == "Archive"
    words = shlex.split(str(caught.value.hint).partition("`")[2].partition("`")[0])
    assert words[:4] == ["az", "storage", "blob", "set-tier"]
    options = dict(zip(words[4::2], words[5::2], strict=True))
    assert options["--container-name"] == place.container.container_name
    place.container.get_blob_client(options["--name"]).set_standard_blob_tier(options["--tier"])
    append(place, "it's data.bin", b"new end", target=target)
    assert place.get(target or "it's data.bin") == bytes(5000) + b"new end"


def test_nothing_is_written_to_a_blob_in_the_archive_tier(place: AzurePlace) -> None:
    place.put("data.bin", bytes(5000))
    place.put("archived.bin", b"old")
    place.blob("archived.bin").set_standard_blob_tier("Archive")
    for act in (
        lambda: append(place, "data.bin", b"new end", target="archived.bin"),
        lambda: place.store.check_output(place.path("archived.bin"), overwrite=True),
    ):
        with pytest.raises(UsageError, match="Archive tier"):
            act()
    assert place.blob("archived.bin").get_blob_properties().size == 3


def test_one_container_has_several_spellings(place: AzurePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    place.put("data.bin", b"content")
    container, account = place.container.container_name, running.azurite().user
    spellings = [
        place.path("data.bin"),
        f"abfss://{container}@{account}.dfs.core.windows.net/lake/data.bin",
        f"abfs://{container}@{account}.blob.core.windows.net/lake/data.bin",
    ]
    spell = place.store.spelling()
    assert len({spell(uri) for uri in spellings}) == 1
    for uri in spellings:
        with place.store.open(uri) as source:
            assert source.read_at(0, 7) == b"content"
    other = f"abfss://{container}@other.dfs.core.windows.net/lake/data.bin"
    monkeypatch.setenv("AZURE_STORAGE_ANON", "true")
    assert spell(other).startswith("https://other.blob.core.windows.net/")
    with pytest.raises(UsageError, match="the output is the input"):
        place.store.destination(spellings[1], spellings[0])


SECRET, NO_KEY = "c2VjcmV0", "not base64!!"
SIGNATURE = f"sv=2021-01-01&sig={SECRET}&se=2021-01-02T00%3A00%3A00Z&sp=r&sr=c"
STRING, KEY, TOKEN, ANONYMOUS, ENDPOINT = (
    f"AZURE_STORAGE_{name}" for name in ("CONNECTION_STRING", "KEY", "SAS_TOKEN", "ANON", "SERVICE_ENDPOINT")
)
NOTHING_THERE = "http://127.0.0.1:1/account"
UNUSABLE: dict[str, tuple[dict[str, str], str, type[BloomError], str, str]] = {
    "no account": ({STRING: ""}, "az://c/x", UsageError, "the storage account isn't known",
                   "AZURE_STORAGE_ACCOUNT"),
    "no container": ({KEY: ""}, "az://nowhere/x", UnreadableError, r"no such container \(ContainerNotFound, request ",
                     "check the container's name and the account"),
    "an invalid name": ({KEY: ""}, "az://UPPER_case/x", UnreadableError, "a container can't have such a name", ""),
    "a bad string": ({STRING: f"AccountKey={SECRET};nonsense"}, "az://c/x", UsageError,
                     "the credentials for Azure can't be used", ""),
    "a bad key": ({KEY: NO_KEY}, "", UnreadableError, "the account's key is invalid", ""),
    "a bad signature": ({TOKEN: SIGNATURE}, "", UnreadableError, "access denied", ""),
    "a signature in the URI": ({KEY: ""}, f"?{SIGNATURE}", UnreadableError, ".", ""),
    "no server": ({TOKEN: SIGNATURE, ENDPOINT: NOTHING_THERE}, "", UnreadableError, "the connection was refused", ""),
    "no such server": ({ANONYMOUS: "true"}, "abfss://c@no-such-account.dfs.invalid/x", UnreadableError,
                       "the server's name can't be resolved", ""),
}  # fmt: skip
"""Variables besides the account's and the server's (an empty key: the right one), a URI or its end, and the error and
its hint."""


@pytest.mark.parametrize("case", UNUSABLE)
def test_errors_name_what_is_wrong_and_show_no_credentials(
    place: AzurePlace, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    variables, uri, error, reason, hint = UNUSABLE[case]
    server = running.azurite()
    if STRING not in variables:
        monkeypatch.delenv(STRING)
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", server.user)
        monkeypatch.setenv(ENDPOINT, f"{server.url}/{server.user}")
    for name, value in variables.items():
        if value or name == KEY:
            monkeypatch.setenv(name, value or server.secret)
        else:
            monkeypatch.delenv(name)
    with pytest.raises(error, match=reason) as caught:
        place.store.open(uri if "://" in uri else place.path("data.bin") + uri)
    assert hint in str(caught.value.hint)
    assert caught.value.hint
    assert "\n" not in caught.value.message
    for secret in (SECRET, NO_KEY, server.secret):
        assert secret not in f"{caught.value} {caught.value.hint}"


def test_account_and_key_and_endpoint_come_from_variables(place: AzurePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    place.put("data.bin", b"content")
    server = running.azurite()
    monkeypatch.delenv(STRING)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", server.user)
    monkeypatch.setenv(KEY, server.secret)
    monkeypatch.setenv(ENDPOINT, f"{server.url}/{server.user}")
    with place.store.open(place.path("data.bin")) as source:
        assert source.read_at(0, 7) == b"content"


def test_a_marker_of_a_directory_is_neither_listed_nor_opened(place: AzurePlace) -> None:
    place.put("many/1.parquet", b"x")
    place.container.get_blob_client("lake/many/folder").upload_blob(b"", metadata={"hdi_isfolder": "true"})
    assert [item.relative for item in place.store.list(place.path("many"))] == ["1.parquet"]
    with pytest.raises(UnreadableError):
        place.store.open(place.path("many/folder"))


def test_a_blob_that_is_not_what_was_written_names_the_way_back(
    place: AzurePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bloomcli.storage.objects.content import Content

    place.put("data.bin", bytes(5000))
    read = Content.read
    reads: list[int] = []

    def other(self: Content, start: int, length: int) -> bytes:
        """Differs from what was uploaded when it is compared."""
        reads.append(start)
        data = read(self, start, length)
        return data if len(reads) == 1 else data[::-1] + b"?"

    monkeypatch.setattr(Content, "read", other)
    with pytest.raises(WriteError, match="the blob in the store isn't what was written") as caught:
        append(place, "data.bin", b"new end")
    assert "restore it from a snapshot" in str(caught.value.hint)


def test_a_store_that_asks_for_fewer_requests_says_how_often_it_was_asked(
    place: AzurePlace, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bloomcli.storage.azure.connection.time.sleep", lambda _: None)
    place.put("data.bin", bytes(5000))
    fault = Fault(Action.ERROR_429, "Get Blob", times=None)
    with proxy.injecting(fault), pytest.raises(UnreadableError, match="fewer requests, 5 attempts failed") as caught:
        place.store.open(place.path("data.bin"))
    assert fault.fired == 5
    assert caught.value.hint
    with proxy.injecting(Fault(Action.TRUNCATE, "Get Blob")), place.store.open(place.path("data.bin")) as source:
        assert source.read_at(0, 5000) == bytes(5000)
    assert capfd.readouterr() == ("", ""), "the SDK's own warnings"


def test_bytes_are_taken_as_they_are_whatever_a_blob_says_of_their_encoding(place: AzurePlace) -> None:
    data = bytes(range(256)) * 4096
    place.blob("data.bin").upload_blob(data, content_settings=ContentSettings(content_encoding="gzip"))
    with place.store.open(place.path("data.bin")) as source:
        assert source.read_at(0, len(data)) == data
    append(place, "data.bin", b"new end")
    with place.store.open(place.path("data.bin")) as source:
        assert source.read_at(len(data), 7) == b"new end"
    assert place.blob("data.bin").get_blob_properties().content_settings.content_encoding == "gzip"


@pytest.mark.parametrize("name", ["bm9uZSBvZiBvdXJz", "bG9uZ2VyIHRoYW4gb3VycyBhbmQgdGhlaXJz"], ids=["short", "long"])
def test_the_next_run_ends_what_an_ended_one_has_uploaded(place: AzurePlace, name: str) -> None:
    place.put("data.bin", bytes(5000))
    place.blob("data.bin").stage_block(name, b"of a run that ended")
    place.blob("plain.bin").upload_blob(bytes(5000))
    place.blob("plain.bin").stage_block(name, b"of a run that ended")
    for target in ("data.bin", "plain.bin"):
        append(place, target, b"new end")
        assert place.get(target) == bytes(5000) + b"new end"
        assert place.blob(target).get_block_list("uncommitted")[1] == []

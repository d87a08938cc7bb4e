"""The servers and the proxy of the stores' tests: they start, count and break as those tests rely on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from conftest import ROOT, need
from support.processes import alive, started, wait_until
from support.servers import clients, running
from support.servers.dialects import S3, Gcs
from support.servers.faults import Action, Fault
from support.servers.gcs import Preconditions
from support.servers.proxy import Proxy

pytestmark = pytest.mark.servers

CONTENT = bytes(range(256)) * 4096


@pytest.fixture(scope="module")
def bucket() -> str:
    """A bucket with an object."""
    need(running.installed("minio"), "MinIO: python tests/support/servers/install.py minio")
    client = clients.s3(running.minio())
    client.create_bucket(Bucket="proxied")
    client.put_object(Bucket="proxied", Key="a/data.bin", Body=CONTENT)
    return "proxied"


@pytest.fixture
def proxy(bucket: str) -> Iterator[Proxy]:
    """A proxy in front of MinIO."""
    with Proxy(running.minio().port, S3()) as made:
        yield made


def get(proxy: Proxy, **more: object) -> bytes:
    """The object, through the proxy."""
    client = clients.s3(running.minio(), proxy.url)
    data: bytes = client.get_object(Bucket="proxied", Key="a/data.bin", **more)["Body"].read()
    return data


def test_requests_and_bytes_are_recorded_by_their_kind(proxy: Proxy) -> None:
    client = clients.s3(running.minio(), proxy.url)
    assert get(proxy) == CONTENT
    assert get(proxy, Range="bytes=10-19") == CONTENT[10:20]
    client.put_object(Bucket="proxied", Key="b", Body=b"12345")
    assert proxy.kinds() == {"GetObject": 2, "PutObject": 1}
    assert [request.received for request in proxy.of_kind("GetObject")] == [len(CONTENT), 10]
    (put,) = proxy.of_kind("PutObject")
    assert (put.sent, put.status, put.path) == (5, 200, "/proxied/b")


def test_a_broken_answer_is_an_error_once_and_not_again(proxy: Proxy) -> None:
    for action in (Action.RESET, Action.TRUNCATE, Action.ERROR_500, Action.ERROR_503, Action.ERROR_429, Action.LOSE):
        proxy.forget()
        with proxy.injecting(Fault(action, "GetObject", at=2)):
            assert get(proxy) == CONTENT
            with pytest.raises(Exception, match=r".") as caught:
                get(proxy)
            assert type(caught.value).__module__.startswith(("botocore", "urllib3"))
            assert get(proxy) == CONTENT
        assert [request.fault for request in proxy.recorded] == [None, action, None]


def test_a_shortened_body_and_another_tag_are_answers(proxy: Proxy) -> None:
    client = clients.s3(running.minio(), proxy.url)
    tag = client.head_object(Bucket="proxied", Key="a/data.bin")["ETag"]
    with proxy.injecting(Fault(Action.SHORTEN)):
        assert get(proxy, Range="bytes=0-99") == CONTENT[:50]
    with proxy.injecting(Fault(Action.OTHER_TAG)):
        other = client.head_object(Bucket="proxied", Key="a/data.bin")["ETag"]
    assert other != tag
    assert len(other) == len(tag)


def test_a_lost_answer_is_to_a_request_that_was_done_and_a_refused_one_was_not(proxy: Proxy) -> None:
    client = clients.s3(running.minio(), proxy.url)
    for action, there in ((Action.LOSE, True), (Action.REFUSE, False), (Action.ERROR_503, False)):
        with proxy.injecting(Fault(action, "PutObject")), pytest.raises(Exception, match=r"."):
            client.put_object(Bucket="proxied", Key=action.name, Body=CONTENT)
        assert ("Contents" in client.list_objects_v2(Bucket="proxied", Prefix=action.name)) is there


def test_a_server_ends_with_the_process_that_started_it() -> None:
    need(running.installed("fake-gcs-server"), "fake-gcs-server: python tests/support/servers/install.py")
    program = (
        "import time; from support.servers import running; from support.processes import children; import os\n"
        "running.fake_gcs(); print(*children(os.getpid()), flush=True); time.sleep(6000)"
    )
    env = os.environ | {"PYTHONPATH": str(ROOT / "tests")}
    with started([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=env) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) >= 2
        parent.kill()
    assert wait_until(lambda: not any(map(alive, pids)))


@pytest.fixture
def gcs_proxy() -> Iterator[Proxy]:
    """A proxy in front of fake-gcs-server that enforces preconditions."""
    need(running.installed("fake-gcs-server"), "fake-gcs-server: python tests/support/servers/install.py")
    port = running.fake_gcs().port
    with Proxy(port, Gcs(), guard=Preconditions(port)) as made:
        yield made


def test_generations_are_enforced_where_the_emulator_ignores_them(gcs_proxy: Proxy) -> None:
    from google.api_core.exceptions import NotFound, PreconditionFailed

    bucket = clients.gcs(gcs_proxy.url).create_bucket(f"generations-{os.getpid()}")
    one = bucket.blob("lake/a b.bin")
    one.upload_from_string(b"first", if_generation_match=0)
    first = one.generation
    with pytest.raises(PreconditionFailed):
        bucket.blob("lake/a b.bin").upload_from_string(b"again", if_generation_match=0)
    assert one.download_as_bytes(if_generation_match=first, start=1, end=3) == b"irs"
    bucket.blob("lake/a b.bin").upload_from_string(b"second", if_generation_match=first)
    with pytest.raises(PreconditionFailed):
        bucket.blob("lake/a b.bin").download_as_bytes(if_generation_match=first)
    with pytest.raises(NotFound):
        bucket.blob("lake/a b.bin", generation=first).download_as_bytes()
    now = bucket.get_blob("lake/a b.bin")
    assert now.generation != first
    tail = bucket.blob("tail")
    tail.upload_from_string(b"!")
    both = [now, tail]
    with pytest.raises(PreconditionFailed):
        bucket.blob("lake/a b.bin").compose(both, if_generation_match=first)
    with pytest.raises(PreconditionFailed):
        bucket.blob("new").compose(both, if_source_generation_match=[first, tail.generation])
    with pytest.raises(PreconditionFailed):
        bucket.blob("tail").delete(if_generation_match=first)
    bucket.blob("lake/a b.bin").compose(both, if_generation_match=now.generation)
    assert bucket.blob("lake/a b.bin").download_as_bytes() == b"second!"
    assert gcs_proxy.kinds()["objects.compose"] == 3


def test_a_resumable_upload_has_its_conditions_at_its_end_too(gcs_proxy: Proxy) -> None:
    bucket = clients.gcs(gcs_proxy.url).create_bucket(f"resumable-{os.getpid()}")
    bucket.blob("x").upload_from_string(b"theirs")
    generation = bucket.get_blob("x").generation

    def overwrite() -> None:
        bucket.blob("x").upload_from_string(b"theirs again")

    mine = bucket.blob("x", chunk_size=256 << 10)
    with (
        gcs_proxy.injecting(Fault(Action.PASS, "objects.insert (resumable)", at=2, call=overwrite)),
        pytest.raises(Exception, match="412"),
        mine.open("wb", if_generation_match=generation) as file,
    ):
        file.write(bytes(300 << 10))
    assert bucket.blob("x").download_as_bytes() == b"theirs again"

"""The servers and the proxy of the stores' tests: they start, count, slow down and break as those tests rely on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from conftest import ROOT, need
from support.processes import alive, started, wait_until
from support.servers import clients, running
from support.servers.dialects import S3, Azure, Gcs
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
    upload = client.create_multipart_upload(Bucket="proxied", Key="c")["UploadId"]
    which = {"Bucket": "proxied", "Key": "c", "UploadId": upload}
    tag = client.upload_part(**which, PartNumber=1, Body=CONTENT)["ETag"]
    source = {"Bucket": "proxied", "Key": "a/data.bin"}
    client.upload_part_copy(**which, PartNumber=2, CopySource=source)
    client.complete_multipart_upload(**which, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": tag}]})
    client.list_objects_v2(Bucket="proxied")
    client.delete_object(Bucket="proxied", Key="c")
    assert proxy.kinds() == {
        "GetObject": 2,
        "PutObject": 1,
        "CreateMultipartUpload": 1,
        "UploadPart": 1,
        "UploadPartCopy": 1,
        "CompleteMultipartUpload": 1,
        "ListObjectsV2": 1,
        "DeleteObject": 1,
    }
    assert [request.received for request in proxy.of_kind("GetObject")] == [len(CONTENT), 10]
    (put,) = proxy.of_kind("PutObject")
    assert (put.sent, put.status, put.path) == (5, 200, "/proxied/b")
    assert proxy.of_kind("UploadPart")[0].sent == len(CONTENT)


def test_latency_and_bandwidth_take_their_time(proxy: Proxy) -> None:
    with Proxy(running.minio().port, S3(), latency=0.2, bytes_per_second=4e6) as slow:
        started = time.perf_counter()
        get(slow)
        taken = time.perf_counter() - started
    assert taken > 0.9 * (0.2 + len(CONTENT) / 4e6)


@pytest.mark.parametrize(
    "action", [Action.RESET, Action.TRUNCATE, Action.ERROR_500, Action.ERROR_503, Action.ERROR_429, Action.LOSE]
)
def test_a_broken_answer_is_an_error_once_and_not_again(proxy: Proxy, action: Action) -> None:
    with proxy.injecting(Fault(action, "GetObject", at=2)):
        assert get(proxy) == CONTENT
        with pytest.raises(Exception, match=r".") as caught:
            get(proxy)
        assert type(caught.value).__module__.startswith(("botocore", "urllib3"))
        assert get(proxy) == CONTENT
    assert [request.fault for request in proxy.recorded] == [None, action, None]


def test_a_shortened_body_a_slow_one_and_another_tag_are_answers(proxy: Proxy) -> None:
    client = clients.s3(running.minio(), proxy.url)
    tag = client.head_object(Bucket="proxied", Key="a/data.bin")["ETag"]
    with proxy.injecting(Fault(Action.SHORTEN)):
        assert get(proxy, Range="bytes=0-99") == CONTENT[:50]
    with proxy.injecting(Fault(Action.SLOW, seconds=0.5)):
        started = time.perf_counter()
        assert get(proxy) == CONTENT
        assert time.perf_counter() - started > 0.45
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


def test_a_completion_can_answer_200_with_an_error_inside(proxy: Proxy) -> None:
    import botocore.exceptions

    client = clients.s3(running.minio(), proxy.url)
    upload = client.create_multipart_upload(Bucket="proxied", Key="d")["UploadId"]
    which = {"Bucket": "proxied", "Key": "d", "UploadId": upload}
    tag = client.upload_part(**which, PartNumber=1, Body=b"1")["ETag"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": tag}]}
    with (
        proxy.injecting(Fault(Action.FAILED_200, "CompleteMultipartUpload")),
        pytest.raises(botocore.exceptions.ClientError, match="InternalError"),
    ):
        client.complete_multipart_upload(**which, MultipartUpload=parts)
    assert "Contents" not in client.list_objects_v2(Bucket="proxied", Prefix="d")
    client.abort_multipart_upload(**which)


def test_a_rule_can_end_the_client_at_a_request(proxy: Proxy) -> None:
    program = (
        "import sys, urllib.request\n"
        "for _ in range(9):\n"
        "  try: urllib.request.urlopen(sys.argv[1])\n"
        "  except urllib.error.HTTPError: pass"
    )
    fault = Fault(Action.REFUSE, at=3)
    with proxy.injecting(fault):
        client = subprocess.Popen([sys.executable, "-c", program, f"{proxy.url}/proxied/a"])
        fault.call = client.kill
        assert client.wait(600) == -signal.SIGKILL
    assert len(proxy.recorded) == 3


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


def test_azurite_works_through_the_proxy() -> None:
    need(running.installed("azurite"), "Azurite: python tests/support/servers/install.py azurite")
    server = running.azurite()
    with Proxy(server.port, Azure()) as proxy:
        container = clients.azure(server, proxy.url).create_container(f"c{os.getpid()}")
        blob = container.get_blob_client("lake/data.bin")
        blob.stage_block("MDAx", CONTENT)
        blob.commit_block_list(["MDAx"])
        assert blob.download_blob(offset=5, length=10).readall() == CONTENT[5:15]
        assert {"Create Container", "Put Block", "Put Block List", "Get Blob"} <= proxy.kinds().keys()
        with proxy.injecting(Fault(Action.ERROR_503)), pytest.raises(Exception, match="ServerBusy"):
            blob.get_block_list()

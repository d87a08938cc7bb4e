"""Readers that look up values in ORC files only. Each fact has its source, as in `reader_table`."""

from __future__ import annotations

from typing import Final

from bloomcli.rules.reader_types import NEGATIVE_ZERO, Kind, Reader, measured, source

_ORC: Final = frozenset({"orc"})
_FLOATS: Final = frozenset({"FLOAT", "DOUBLE"})
_AUGUST: Final = "main of August 2026"


_SARGS: Final = source(
    "orc-core 2.3", "RecordReaderImpl.checkInBloomFilter: the literal's doubleToLongBits alone is tested"
)

ORC_ONLY: Final = (
    Reader(
        name="orc-java",
        title="orc-core",
        aliases=("orc-core", "orc"),
        probes=_ORC,
        known=measured(
            "orc-core 2.3 through Spark 4.3",
            "if the table's type differs from the file's, predicates are evaluated only for the conversions in"
            " SchemaEvolution.isPPDSafeConversion",
        ),
        wrong_about={NEGATIVE_ZERO: _SARGS._replace(kind=Kind.MEASURED)},
        zeros=_FLOATS,
    ),
    Reader(
        name="orc-cpp",
        title="ORC C++",
        aliases=("orc-c++", "pyorc"),
        probes=_ORC,
        known=measured("PyORC 0.12", "by search arguments of the application"),
        wrong_about={
            NEGATIVE_ZERO: measured(
                "PyORC 0.12",
                "sargs/PredicateLeaf.cc, checkInBloomFilter: testDouble hashes the literal's own bits",
            )
        },
        zeros=_FLOATS,
    ),
    Reader(
        name="hive",
        title="Hive",
        probes=_ORC,
        known=source(
            _AUGUST,
            "ORC through orc-core; for Parquet, also in the vectorised reader, it uses RowGroupFilter with statistics"
            " only (ParquetRecordReaderBase.java, HIVE-29737 is open)",
        ),
        wrong_about={NEGATIVE_ZERO: _SARGS},
        zeros=_FLOATS,
    ),
    Reader(
        name="presto",
        title="Presto",
        aliases=("prestodb",),
        probes=_ORC,
        known=source(
            _AUGUST,
            "ORC if its ORC Bloom filters are enabled, except REAL; it doesn't read those of Parquet (presto#18230 is"
            " open)",
        ),
        wrong_about={
            NEGATIVE_ZERO: source(
                _AUGUST, "TupleDomainOrcPredicate.checkInBloomFilter: testDouble of the unchanged literal"
            )
        },
        zeros=frozenset({"DOUBLE"}),
    ),
)

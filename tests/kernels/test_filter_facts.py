"""Which bounds are certainly values of their chunk."""

from __future__ import annotations

import math
import struct

from hypothesis import given
from hypothesis import strategies as st

from bloomcli import kernels
from bloomcli.formats.deep_check import has_two_forms
from bloomcli.formats.parquet.statistics import kind_of_bounds
from bloomcli.model.file import Column


@given(
    st.sampled_from(["INT32", "INT64", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY", "INT96"]),
    st.sampled_from([None, "DECIMAL(9,2)", "FLOAT16", "INTERVAL"]),
    st.sampled_from([b"", b"\0" * 4, b"\0" * 7 + b"\x80", struct.pack("<f", math.nan), struct.pack("<d", -math.nan)])
    | st.binary(max_size=9),
    st.sampled_from([None, True, False]),
)
def test_a_bound_is_certain_if_the_statistics_and_its_type_say_that_it_is_a_value(
    physical: str, logical: str | None, bound: bytes, exact: bool | None
) -> None:
    column = Column(path="a", index=0, physical=physical, logical=logical, type_length=4)
    width = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8, "FIXED_LEN_BYTE_ARRAY": 4}.get(physical)
    if physical == "BYTE_ARRAY":
        wanted = exact is True and logical != "DECIMAL(9,2)"
    elif exact is False or len(bound) != width:
        wanted = False
    elif physical == "FIXED_LEN_BYTE_ARRAY":
        wanted = logical not in {"FLOAT16", "INTERVAL"}
    else:
        wanted = not has_two_forms(bound, physical)
    assert kernels.is_certain(bound, exact, *kind_of_bounds(column)) == wanted

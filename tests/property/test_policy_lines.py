"""Lines of keys in TOML texts: of a text whose keys say their lines, and of whatever tomllib reads."""

from __future__ import annotations

import re
import tomllib
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bloomcli.errors import PolicyError
from bloomcli.policy.policy_file import key_lines, parse_toml
from bloomcli.policy.policy_keys import At

TEXT: Final = r"""# [no.table] = 1
on2 = 1 # on2 = 1, @@@ and ###
on3.b3 . "c3" = '#' # a dotted key
"on4 \"'\\]" = [
  # a comment, = [ ] @@@
  1, "a = [",
  [ # nested

    'x', '"',
  ],
  { on11 = "]", on11b.on11c = [
      2 ] },
]
on14 = ###
[on15]
on16 = 1###
'on17 "=' = @@@
# on18 = "@@@
"\U0000006fn19" = 1979-05-27T07:32:00Z

[on21] # [on21]
on22 = {}
[ on23 . "on23.b" ]
	on24={on24b=-1.5e3,on24c=nan}
[on23.on25]
[[on26]]
on27 = true
[on26.on28]
[[on26.on29]]
on30.on30b = ''
[[ on26 ]]
[[on26.on32]]
[on26.on32.on33]
[[on26.on32]]
[on26.on32.on35.on35b]
on36 = [ [], [[]] ]
""".replace("@@@", "'" * 3).replace("###", '"' * 3)
"""Each key has the number of its line in its name, or the last one has of several."""
ELEMENTS: Final[dict[At, int]] = {
    **{("on4 \"'\\]", at): line for at, line in enumerate((6, 6, 7, 11))},
    **{("on4 \"'\\]", 2, at): 9 for at in (0, 1)},
    ("on4 \"'\\]", 3, "on11b", "on11c", 0): 12,
    ("on26", 0): 26,
    ("on26", 1): 31,
    ("on26", 0, "on29", 0): 29,
    **{("on26", 1, "on32", at): line for at, line in enumerate((32, 34))},
    **{("on26", 1, "on32", 1, "on35", "on35b", "on36", *at): 36 for at in ((0,), (1,), (1, 0))},
}
"""The lines of the elements of arrays."""


def paths(value: object, at: At = ()) -> set[At]:
    """Every key and position within a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = set()
    for step, inner in items:
        found |= {(*at, step)} | paths(inner, (*at, step))
    return found


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["no mark", "byte order mark"])
def test_each_key_and_element_is_on_the_line_on_which_it_was_written(newline: str, mark: str) -> None:
    found = key_lines(mark + TEXT.replace("\n", newline))
    assert set(found) == paths(tomllib.loads(TEXT))
    keys = {at: int(number) for at in found for number in re.findall(r"\d+", str(at[-1])) if at not in ELEMENTS}
    assert found == keys | ELEMENTS


@pytest.mark.slow
@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=80) | st.text("ab.=[]{}'\"#,\n\r\t 1\\", max_size=60)
)
@settings(max_examples=150, deadline=None)
def test_lines_of_whatever_tomllib_reads_are_those_of_its_keys(text: str) -> None:
    try:
        known = paths(parse_toml(text, "bloom.toml"))
    except PolicyError as error:
        line = (error.path or "").removeprefix("bloom.toml").removeprefix(":")
        assert not line or 1 <= int(line) <= text.count("\n") + 1
        return
    found = key_lines(text)
    assert set(found) == known
    assert all(1 <= line <= text.count("\n") + 1 for line in found.values())

"""Random SQL statements on two small tables, for Hypothesis, with conditions of any shape in all clauses."""

from __future__ import annotations

from hypothesis import strategies as st

COLUMNS = ("id", "grp", "name", "day")
_VALUES = {
    "id": st.integers(-2, 6).map(str),
    "grp": st.integers(0, 3).map(str),
    "name": st.sampled_from(["'a'", "'b'", "'it''s'", "'-- ;'", "''"]),
    "day": st.integers(1, 4).map("DATE '2024-01-0{}'".format),
}


@st.composite
def predicates(draw: st.DrawFn, table: str) -> str:
    """One predicate on a column of a table."""
    column = draw(st.sampled_from(COLUMNS))
    values = _VALUES[column]
    left = draw(st.sampled_from([f"{table}.{column}", f"{table}.{column}", f'"{table}"."{column}"']))
    one, two = draw(values), draw(values)
    several = ", ".join(draw(st.lists(values, min_size=1, max_size=3)))
    return draw(
        st.sampled_from(
            [
                f"{left} = {one}",
                f"{one} = {left}",
                f"{left} IN ({several})",
                f"{left} IN ({several}, NULL)",
                f"{left} NOT IN ({several})",
                f"{left} <> {one}",
                f"{left} BETWEEN {one} AND {one}",
                f"{left} BETWEEN {one} AND {two}",
                f"{left} NOT BETWEEN {one} AND {one}",
                f"{left} IS NULL",
                f"{left} IS NOT NULL",
                f"{left} IS NOT DISTINCT FROM {one}",
                f"{left} IS DISTINCT FROM {one}",
                f"{left} = NULL",
                f"{left} >= {one}",
                f"coalesce({left}, {one}) = {one}",
                f"CAST({left} AS VARCHAR) = '1'",
                f"{left} = (SELECT max({column}) FROM u)",
                f"{left} IN (SELECT {column} FROM u WHERE grp = 1)",
                "TRUE",
                "1 = 0",
            ]
        )
    )


def conditions(table: str) -> st.SearchStrategy[str]:
    """Conditions of any shape on a table."""
    return st.recursive(
        predicates(table),
        lambda inner: st.one_of(
            st.tuples(inner, inner).map("({0[0]}) AND ({0[1]})".format),
            st.tuples(inner, inner).map("({0[0]} OR {0[1]})".format),
            inner.map("NOT ({})".format),
        ),
        max_leaves=5,
    )


_FORMS = (
    "SELECT * FROM t WHERE {t}",
    "SELECT t.id, count(*) FROM t WHERE {t} GROUP BY t.id",
    "WITH q AS (SELECT id AS k, grp, name, day FROM t WHERE {t}) SELECT * FROM q WHERE k = {n}",
    "WITH q (x, grp, name, day) AS (SELECT * FROM t) SELECT * FROM q WHERE x IN ({n}, 2) AND name = 'a'",
    "SELECT * FROM (SELECT * FROM t ORDER BY id, grp, name, day LIMIT 4) x WHERE x.id = {n}",
    "SELECT * FROM (SELECT id, grp, row_number() OVER (PARTITION BY grp ORDER BY id, name, day) AS r FROM t) x"
    " WHERE x.grp = 1 AND x.id = {n}",
    "SELECT * FROM (SELECT grp, max(id) AS id FROM t GROUP BY grp) x WHERE x.id = {n} AND x.grp = 1",
    "SELECT * FROM (SELECT id + 1 AS id, grp FROM t) x WHERE id = {n} AND grp = 1",
    "SELECT * FROM (SELECT DISTINCT id, name FROM t WHERE {t}) x WHERE id = {n}",
    "SELECT * FROM (SELECT id, name FROM u UNION ALL SELECT grp, name FROM t WHERE {t}) x WHERE id = {n}",
    "SELECT * FROM t JOIN u ON t.id = u.id AND {t} WHERE {u}",
    "SELECT * FROM t LEFT JOIN u ON t.id = u.id AND {t} AND {u}",
    "SELECT * FROM u LEFT JOIN t ON t.id = u.id AND {t}",
    "SELECT * FROM t RIGHT JOIN u ON t.id = u.id AND {t}",
    "SELECT * FROM u RIGHT JOIN t ON t.id = u.id AND {t}",
    "SELECT * FROM t FULL JOIN u ON t.id = u.id AND {t}",
    "SELECT * FROM t FULL JOIN u ON t.id = u.id WHERE {t}",
    "SELECT * FROM u LEFT JOIN t ON t.id = u.id WHERE {t}",
    "SELECT * FROM t SEMI JOIN u ON t.id = u.id AND {t}",
    "SELECT * FROM t ANTI JOIN u ON t.id = u.id AND {t}",
    "SELECT * FROM u ANTI JOIN t ON t.id = u.id AND {t}",
    "SELECT * FROM u JOIN t USING (id) WHERE {t}",
    "SELECT * FROM u, t WHERE u.id = t.id AND ({t})",
    "SELECT * FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.id = u.id AND ({t}))",
    "SELECT * FROM u WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.id = u.id AND ({t}))",
    "SELECT * FROM u WHERE u.id IN (SELECT id FROM t WHERE {t})",
    "SELECT u.id, (SELECT count(*) FROM t WHERE t.id = u.id AND ({t})) FROM u",
    "SELECT * FROM (SELECT * FROM t) AS x (k, grp, name, day) WHERE k = {n}",
    "SELECT * FROM ((SELECT * FROM t WHERE {t}) EXCEPT (SELECT * FROM u)) x WHERE id = {n}",
    "SELECT * FROM u LEFT JOIN (SELECT * FROM t) x ON x.id = u.id AND x.grp = 1 WHERE x.id = {n} OR u.grp = 1",
    "SELECT * FROM (SELECT t.id, u.grp FROM t LEFT JOIN u USING (id)) x WHERE grp = {n}",
    "SELECT id AS k FROM t WHERE k = {n} AND {t}",
)


@st.composite
def statements(draw: st.DrawFn) -> str:
    """A statement that reads t once, in any form; u is another table."""
    form = draw(st.sampled_from(_FORMS))
    return form.format(t=draw(conditions("t")), u=draw(predicates("u")), n=draw(st.integers(0, 4)))

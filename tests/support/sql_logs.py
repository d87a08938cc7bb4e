"""Logs of SQL queries: TPC-H's 22 queries and queries like ClickBench's, with random parameters.

TPC-H's queries follow the specification (TPC-H 3.0.1, section 2.4), and so do parameters that are simple to draw.
Statements of one query differ only in literals.
"""

from __future__ import annotations

from datetime import date, timedelta
from random import Random
from typing import Final

TPCH_COLUMNS: Final = {
    "lineitem": "l_orderkey l_partkey l_suppkey l_linenumber l_quantity l_extendedprice l_discount l_tax "
    "l_returnflag l_linestatus l_shipdate l_commitdate l_receiptdate l_shipinstruct l_shipmode l_comment",
    "orders": "o_orderkey o_custkey o_orderstatus o_totalprice o_orderdate o_orderpriority o_clerk o_shippriority "
    "o_comment",
    "part": "p_partkey p_name p_mfgr p_brand p_type p_size p_container p_retailprice p_comment",
    "nation": "n_nationkey n_name n_regionkey n_comment",
    "region": "r_regionkey r_name r_comment",
    "customer": "c_custkey c_name c_address c_nationkey c_phone c_acctbal c_mktsegment c_comment",
}

TPCH: Final = (
    """SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice * (1 - l_discount)) AS s,
       avg(l_quantity), count(*) FROM lineitem WHERE l_shipdate <= date '1998-12-01' - interval '{days}' day
       GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
    """SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr FROM part, supplier, partsupp, nation, region
       WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size = {size} AND p_type LIKE '%{syllable}'
       AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = '{region}' AND ps_supplycost = (
         SELECT min(ps_supplycost) FROM partsupp, supplier, nation, region WHERE p_partkey = ps_partkey
         AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
         AND r_name = '{region}') ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100""",
    """SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
       FROM customer, orders, lineitem WHERE c_mktsegment = '{segment}' AND c_custkey = o_custkey
       AND l_orderkey = o_orderkey AND o_orderdate < date '{day}' AND l_shipdate > date '{day}'
       GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate LIMIT 10""",
    """SELECT o_orderpriority, count(*) FROM orders WHERE o_orderdate >= date '{day}'
       AND o_orderdate < date '{day}' + interval '3' month AND EXISTS (SELECT * FROM lineitem
       WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate) GROUP BY o_orderpriority""",
    """SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue FROM customer, orders, lineitem, supplier,
       nation, region WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
       AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
       AND r_name = '{region}' AND o_orderdate >= date '{day}' GROUP BY n_name ORDER BY revenue DESC""",
    """SELECT sum(l_extendedprice * l_discount) FROM lineitem WHERE l_shipdate >= date '{day}'
       AND l_discount BETWEEN 0.0{digit} - 0.01 AND 0.0{digit} + 0.01 AND l_quantity < {size}""",
    """SELECT supp_nation, cust_nation, l_year, sum(volume) FROM (SELECT n1.n_name AS supp_nation,
       n2.n_name AS cust_nation, extract(year FROM l_shipdate) AS l_year, l_extendedprice AS volume
       FROM supplier, lineitem, orders, customer, nation n1, nation n2 WHERE s_suppkey = l_suppkey
       AND o_orderkey = l_orderkey AND c_custkey = o_custkey AND s_nationkey = n1.n_nationkey
       AND c_nationkey = n2.n_nationkey AND ((n1.n_name = '{nation}' AND n2.n_name = '{nation2}')
       OR (n1.n_name = '{nation2}' AND n2.n_name = '{nation}'))
       AND l_shipdate BETWEEN date '1995-01-01' AND date '1996-12-31') AS shipping
       GROUP BY supp_nation, cust_nation, l_year""",
    """SELECT o_year, sum(CASE WHEN nation = '{nation}' THEN volume ELSE 0 END) / sum(volume) FROM (
       SELECT extract(year FROM o_orderdate) AS o_year, l_extendedprice AS volume, n2.n_name AS nation
       FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region WHERE p_partkey = l_partkey
       AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey
       AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey AND r_name = '{region}'
       AND s_nationkey = n2.n_nationkey AND p_type = 'ECONOMY ANODIZED {syllable}') AS all_nations GROUP BY o_year""",
    """SELECT nation, o_year, sum(amount) FROM (SELECT n_name AS nation, extract(year FROM o_orderdate) AS o_year,
       l_extendedprice AS amount FROM part, supplier, lineitem, partsupp, orders, nation WHERE s_suppkey = l_suppkey
       AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey AND o_orderkey = l_orderkey
       AND s_nationkey = n_nationkey AND p_name LIKE '%{color}%') AS profit GROUP BY nation, o_year""",
    """SELECT c_custkey, c_name, sum(l_extendedprice) AS revenue FROM customer, orders, lineitem, nation
       WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= date '{day}'
       AND l_returnflag = 'R' AND c_nationkey = n_nationkey GROUP BY c_custkey, c_name LIMIT 20""",
    """SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS v FROM partsupp, supplier, nation
       WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = '{nation}' GROUP BY ps_partkey
       HAVING sum(ps_supplycost * ps_availqty) > (SELECT sum(ps_supplycost) * 0.0001 FROM partsupp, supplier, nation
       WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = '{nation}')""",
    """SELECT l_shipmode, sum(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END)
       FROM orders, lineitem WHERE o_orderkey = l_orderkey AND l_shipmode IN ('{mode}', '{mode2}')
       AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate AND l_receiptdate >= date '{day}'
       GROUP BY l_shipmode""",
    """SELECT c_count, count(*) FROM (SELECT c_custkey, count(o_orderkey) FROM customer LEFT OUTER JOIN orders
       ON c_custkey = o_custkey AND o_comment NOT LIKE '%{color}%{syllable}%' GROUP BY c_custkey)
       AS c_orders (c_custkey, c_count) GROUP BY c_count""",
    """SELECT 100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice ELSE 0 END) FROM lineitem, part
       WHERE l_partkey = p_partkey AND l_shipdate >= date '{day}'""",
    """WITH revenue (supplier_no, total_revenue) AS (SELECT l_suppkey, sum(l_extendedprice) FROM lineitem
       WHERE l_shipdate >= date '{day}' GROUP BY l_suppkey) SELECT s_suppkey, total_revenue FROM supplier, revenue
       WHERE s_suppkey = supplier_no AND total_revenue = (SELECT max(total_revenue) FROM revenue)""",
    """SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) FROM partsupp, part WHERE p_partkey = ps_partkey
       AND p_brand <> '{brand}' AND p_type NOT LIKE 'MEDIUM POLISHED%'
       AND p_size IN ({size}, 49, 14, 23, 45, 19, 3, 36)
       AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
       GROUP BY p_brand, p_type, p_size""",
    """SELECT sum(l_extendedprice) / 7.0 FROM lineitem, part WHERE p_partkey = l_partkey AND p_brand = '{brand}'
       AND p_container = '{container}' AND l_quantity < (SELECT 0.2 * avg(l_quantity) FROM lineitem
       WHERE l_partkey = p_partkey)""",
    """SELECT c_name, o_orderkey, sum(l_quantity) FROM customer, orders, lineitem WHERE o_orderkey IN (
       SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > {size}) AND c_custkey = o_custkey
       AND o_orderkey = l_orderkey GROUP BY c_name, o_orderkey LIMIT 100""",
    """SELECT sum(l_extendedprice) FROM lineitem, part WHERE (p_partkey = l_partkey AND p_brand = '{brand}'
       AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG') AND l_quantity >= {digit}
       AND p_size BETWEEN 1 AND 5
       AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON') OR (p_partkey = l_partkey
       AND p_brand = '{brand2}' AND p_container IN ('MED BAG', 'MED BOX') AND l_quantity >= 10
       AND p_size BETWEEN 1 AND 10 AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')""",
    """SELECT s_name, s_address FROM supplier, nation WHERE s_suppkey IN (SELECT ps_suppkey FROM partsupp
       WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE '{color}%') AND ps_availqty > (
       SELECT 0.5 * sum(l_quantity) FROM lineitem WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey
       AND l_shipdate >= date '{day}')) AND s_nationkey = n_nationkey AND n_name = '{nation}'""",
    """SELECT s_name, count(*) FROM supplier, lineitem l1, orders, nation WHERE s_suppkey = l1.l_suppkey
       AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F' AND l1.l_receiptdate > l1.l_commitdate
       AND EXISTS (SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
       AND NOT EXISTS (SELECT * FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey
       AND l3.l_receiptdate > l3.l_commitdate) AND s_nationkey = n_nationkey AND n_name = '{nation}'
       GROUP BY s_name""",
    """SELECT cntrycode, count(*), sum(c_acctbal) FROM (SELECT substring(c_phone FROM 1 FOR 2) AS cntrycode, c_acctbal
       FROM customer WHERE substring(c_phone FROM 1 FOR 2) IN ('{size}', '31', '23') AND c_acctbal > (
       SELECT avg(c_acctbal) FROM customer WHERE c_acctbal > 0.00) AND NOT EXISTS (SELECT * FROM orders
       WHERE o_custkey = c_custkey)) AS custsale GROUP BY cntrycode ORDER BY cntrycode""",
)
"""Queries 1 to 22."""

HITS: Final = (
    "SELECT COUNT(*) FROM hits WHERE AdvEngineID <> 0",
    "SELECT UserID FROM hits WHERE UserID = {user}",
    "SELECT COUNT(*) FROM hits WHERE URL LIKE '%{color}%'",
    "SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY EventTime LIMIT {digit}",
    """SELECT URL, COUNT(*) AS PageViews FROM hits WHERE CounterID = 62 AND EventDate >= '{day}'
       AND EventDate <= '2013-07-31' AND DontCountHits = 0 AND IsRefresh = 0 AND URL <> '' GROUP BY URL
       ORDER BY PageViews DESC LIMIT 10 OFFSET {size}""",
    """SELECT URLHash, EventDate, COUNT(*) FROM hits WHERE CounterID = 62 AND TraficSourceID IN (-1, 6)
       AND RefererHash = {user} GROUP BY URLHash, EventDate""",
    "SELECT * FROM hits WHERE UserID IN ({user}, {user2}) OR UserID = {user3}",
)
"""Queries like those of ClickBench, on its table."""


def _parameters(random: Random) -> dict[str, object]:
    nations = random.sample(["FRANCE", "GERMANY", "BRAZIL", "CHINA", "KENYA", "PERU"], 2)
    modes = random.sample(["MAIL", "SHIP", "AIR", "RAIL", "TRUCK"], 2)
    return {
        "days": random.randint(60, 120),
        "size": random.randint(1, 50),
        "digit": random.randint(2, 9),
        "syllable": random.choice(["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"]),
        "region": random.choice(["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]),
        "segment": random.choice(["AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY"]),
        "day": date(1993, 1, 1) + timedelta(days=random.randint(0, 1500)),
        "nation": nations[0],
        "nation2": nations[1],
        "color": random.choice(["green", "red", "azure", "navy"]),
        "mode": modes[0],
        "mode2": modes[1],
        "brand": f"Brand#{random.randint(1, 5)}{random.randint(1, 5)}",
        "brand2": f"Brand#{random.randint(1, 5)}{random.randint(1, 5)}",
        "container": random.choice(["SM CASE", "LG BOX", "MED BAG"]),
        "user": random.randint(-(2**63), 2**63 - 1),
        "user2": random.randint(0, 2**63 - 1),
        "user3": random.randint(0, 2**63 - 1),
    }


def tpch(number: int, random: Random) -> str:
    """Query `number`, from 1 on, with random parameters."""
    return TPCH[number - 1].format_map(_parameters(random))


def log(statements: int, seed: int = 0) -> str:
    """A log of this number of statements of both kinds, in random order."""
    random = Random(seed)
    return ";\n".join(random.choice(TPCH + HITS).format_map(_parameters(random)) for _ in range(statements))

# tpch.sh: queries in the shape of some of TPC-H's, for sql_bench.sh and auto_suite.sh.
#
# The tables have the columns, widths and distributions that TPC-H's specification gives
# to them, as far as these queries can tell: uniform keys, orders of 1 to 7 lines, the
# dates of a line relative to its order's, a third of the customers without orders, the
# price of a line by its part and quantity, and comments as long as theirs.  Part and
# partsupp are missing, texts are not those of its grammar, and the values are not those of
# its generator.  So nothing that is measured here is a result of TPC-H, nor to be compared
# with one.
#
# What a row has follows from its number by hashing (any() below), so that each connection
# can make a range of the rows, of orders and of lines alike, and they fit together.
# Orders that are equal by what a query sorts by are sorted by a key besides, so that its
# rows are always the same.

list=$(cat <<'END'
q1|SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*) FROM lineitem WHERE l_shipdate <= date '1998-12-01' - interval '90 days' GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus
q3|SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority FROM customer JOIN orders ON o_custkey = c_custkey JOIN lineitem ON l_orderkey = o_orderkey WHERE c_mktsegment = 'BUILDING' AND o_orderdate < date '1995-03-15' AND l_shipdate > date '1995-03-15' GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10
q4|SELECT o_orderpriority, count(*) FROM orders WHERE o_orderdate >= date '1993-07-01' AND o_orderdate < date '1993-07-01' + interval '3 months' AND EXISTS (SELECT FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate) GROUP BY o_orderpriority ORDER BY o_orderpriority
q5|SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue FROM customer JOIN orders ON o_custkey = c_custkey JOIN lineitem ON l_orderkey = o_orderkey JOIN supplier ON s_suppkey = l_suppkey AND s_nationkey = c_nationkey JOIN nation ON n_nationkey = s_nationkey JOIN region ON r_regionkey = n_regionkey WHERE r_name = 'ASIA' AND o_orderdate >= date '1994-01-01' AND o_orderdate < date '1994-01-01' + interval '1 year' GROUP BY n_name ORDER BY revenue DESC, n_name
q6|SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem WHERE l_shipdate >= date '1994-01-01' AND l_shipdate < date '1994-01-01' + interval '1 year' AND l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND l_quantity < 24
q10|SELECT c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name, c_address, c_phone, c_comment FROM customer JOIN orders ON o_custkey = c_custkey JOIN lineitem ON l_orderkey = o_orderkey JOIN nation ON n_nationkey = c_nationkey WHERE o_orderdate >= date '1993-10-01' AND o_orderdate < date '1993-10-01' + interval '3 months' AND l_returnflag = 'R' GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment ORDER BY revenue DESC, c_custkey LIMIT 20
q12|SELECT l_shipmode, sum(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) AS high, sum(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END) AS low FROM orders JOIN lineitem ON l_orderkey = o_orderkey WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate AND l_receiptdate >= date '1994-01-01' AND l_receiptdate < date '1994-01-01' + interval '1 year' GROUP BY l_shipmode ORDER BY l_shipmode
q13|SELECT n_orders, count(*) AS n_customers FROM (SELECT c_custkey, count(o_orderkey) AS n_orders FROM customer LEFT JOIN orders ON o_custkey = c_custkey AND o_comment NOT LIKE '%special%requests%' GROUP BY c_custkey) c GROUP BY n_orders ORDER BY n_customers DESC, n_orders DESC
q18|SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) FROM customer JOIN orders ON o_custkey = c_custkey JOIN lineitem ON l_orderkey = o_orderkey WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 300) GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice ORDER BY o_totalprice DESC, o_orderdate, o_orderkey LIMIT 100
q21|SELECT s_name, count(*) AS n FROM supplier JOIN lineitem a ON a.l_suppkey = s_suppkey JOIN orders ON o_orderkey = a.l_orderkey JOIN nation ON n_nationkey = s_nationkey WHERE o_orderstatus = 'F' AND a.l_receiptdate > a.l_commitdate AND EXISTS (SELECT FROM lineitem b WHERE b.l_orderkey = a.l_orderkey AND b.l_suppkey <> a.l_suppkey) AND NOT EXISTS (SELECT FROM lineitem c WHERE c.l_orderkey = a.l_orderkey AND c.l_suppkey <> a.l_suppkey AND c.l_receiptdate > c.l_commitdate) AND n_name = 'SAUDI ARABIA' GROUP BY s_name ORDER BY n DESC, s_name LIMIT 100
END
)

# in_parallel ROWS STATEMENT: runs it on all cores, each with a range of the numbers
# from 1 to ROWS as :first and :last
in_parallel()
{
	local jobs i pids=()

	jobs=$(nproc)
	if [ "$jobs" -gt 16 ]; then jobs=16; fi
	for ((i = 0; i < jobs; i++)); do
		sql -v first=$(($1 * i / jobs + 1)) -v last=$(($1 * (i + 1) / jobs)) <<<"$2" >/dev/null &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i" || return 1; done
}

# make_tables N: so that lineitem has about N rows; scale factor 1 is 6,000,000
make_tables()
{
	local n_orders=$(($1 / 4)) n_customers n_suppliers n_parts orders lines t pids=()

	# the customers that have orders are those whose number is no multiple of 3
	n_customers=$((n_orders / 30 * 3 + 3)) n_suppliers=$((n_orders / 150 + 4)) n_parts=$((n_orders * 2 / 15 + 1))
	sql -v persistence="${persistence-UNLOGGED}" >/dev/null <<-'END'
		DROP TABLE IF EXISTS region, nation, supplier, customer, orders, lineitem;
		DROP FUNCTION IF EXISTS any_of, any_text, any_phone, one_of;
		-- a number from 0 to n - 1, what being which one of the row that key is
		CREATE FUNCTION any_of(key int8, what int8, n int8) RETURNS int8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
			'SELECT (hashint8extended(key, what) & 9223372036854775807) % n';
		CREATE FUNCTION one_of(texts text[], key int8, what int8) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
			'SELECT texts[1 + any_of(key, what, array_length(texts, 1))]';
		CREATE FUNCTION any_text(key int8, what int8, shortest int8, longest int8) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
			$$ SELECT substr('carefully final deposits sleep furiously about the quick packages, slyly ironic accounts nag above the silent '
				'pinto beans; express instructions wake blithely among the bold theodolites, ideas haggle', (1 + any_of(key, what, 80))::int,
				(shortest + any_of(key, what + 1000, longest - shortest + 1))::int) $$;
		CREATE FUNCTION any_phone(key int8, what int8, nation int8) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
			$$ SELECT concat_ws('-', nation + 10, 100 + any_of(key, what, 900), 100 + any_of(key, what + 1000, 900), 1000 + any_of(key, what + 2000, 9000)) $$;
		CREATE :persistence TABLE region (r_regionkey int, r_name char(25), r_comment varchar(152));
		CREATE :persistence TABLE nation (n_nationkey int, n_name char(25), n_regionkey int, n_comment varchar(152));
		CREATE :persistence TABLE supplier (s_suppkey int, s_name char(25), s_address varchar(40), s_nationkey int,
			s_phone char(15), s_acctbal numeric(15,2), s_comment varchar(101));
		CREATE :persistence TABLE customer (c_custkey int, c_name varchar(25), c_address varchar(40), c_nationkey int,
			c_phone char(15), c_acctbal numeric(15,2), c_mktsegment char(10), c_comment varchar(117));
		CREATE :persistence TABLE orders (o_orderkey int8, o_custkey int, o_orderstatus char(1), o_totalprice numeric(15,2),
			o_orderdate date, o_orderpriority char(15), o_clerk char(15), o_shippriority int, o_comment varchar(79));
		CREATE :persistence TABLE lineitem (l_orderkey int8, l_partkey int, l_suppkey int, l_linenumber int,
			l_quantity numeric(15,2), l_extendedprice numeric(15,2), l_discount numeric(15,2), l_tax numeric(15,2),
			l_returnflag char(1), l_linestatus char(1), l_shipdate date, l_commitdate date, l_receiptdate date,
			l_shipinstruct char(25), l_shipmode char(10), l_comment varchar(44));
		INSERT INTO region SELECT i - 1, (ARRAY['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST'])[i], any_text(i, 11, 31, 115)
			FROM generate_series(1, 5) i;
		INSERT INTO nation SELECT i - 1, (ARRAY['ALGERIA', 'ARGENTINA', 'BRAZIL', 'CANADA', 'EGYPT', 'ETHIOPIA', 'FRANCE',
				'GERMANY', 'INDIA', 'INDONESIA', 'IRAN', 'IRAQ', 'JAPAN', 'JORDAN', 'KENYA', 'MOROCCO', 'MOZAMBIQUE', 'PERU',
				'CHINA', 'ROMANIA', 'SAUDI ARABIA', 'VIETNAM', 'RUSSIA', 'UNITED KINGDOM', 'UNITED STATES'])[i],
			(ARRAY[0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1])[i], any_text(i, 12, 31, 114)
			FROM generate_series(1, 25) i;
	END
	in_parallel "$n_suppliers" "INSERT INTO supplier SELECT i, 'Supplier#' || lpad(i::text, 9, '0'), any_text(i, 21, 10, 40), nation,
			any_phone(i, 22, nation), (any_of(i, 23, 1099999) - 99999) * 0.01, any_text(i, 24, 25, 100)
		FROM (SELECT i, any_of(i, 25, 25) AS nation FROM generate_series(:first, :last) i OFFSET 0) s"
	in_parallel "$n_customers" "INSERT INTO customer SELECT i, 'Customer#' || lpad(i::text, 9, '0'), any_text(i, 31, 10, 40), nation,
			any_phone(i, 32, nation), (any_of(i, 33, 1099999) - 99999) * 0.01,
			one_of('{AUTOMOBILE,BUILDING,FURNITURE,MACHINERY,HOUSEHOLD}', i, 34), any_text(i, 35, 29, 116)
		FROM (SELECT i, any_of(i, 36, 25) AS nation FROM generate_series(:first, :last) i OFFSET 0) s"
	# eight keys of each 32 are used
	orders="SELECT o, (o >> 3 << 5) + (o & 7) AS orderkey, 1 + any_of(o, 41, 7) AS n_lines, date '1992-01-01' + any_of(o, 42, 2406)::int AS ordered
		FROM generate_series(:first::int8, :last) o OFFSET 0"
	lines="SELECT *, quantity * (90000 + part / 10 % 20001 + 100 * (part % 1000)) AS cents, shipped + 1 + any_of(line, 51, 30)::int AS received
		FROM (SELECT number, o * 8 + number AS line, 1 + any_of(o * 8 + number, 52, $n_parts) AS part, 1 + any_of(o * 8 + number, 53, 50) AS quantity,
				any_of(o * 8 + number, 54, 11) AS discount, any_of(o * 8 + number, 55, 9) AS tax, ordered + 1 + any_of(o * 8 + number, 56, 121)::int AS shipped
			FROM generate_series(1, n_lines) number OFFSET 0) l OFFSET 0"
	in_parallel "$n_orders" "INSERT INTO lineitem SELECT orderkey, part, 1 + (part + any_of(line, 61, 4) * ($n_suppliers / 4 + part / $n_suppliers)) % $n_suppliers,
			number, quantity, cents * 0.01, discount * 0.01, tax * 0.01,
			CASE WHEN received > date '1995-06-17' THEN 'N' WHEN any_of(line, 62, 2) = 0 THEN 'R' ELSE 'A' END,
			CASE WHEN shipped > date '1995-06-17' THEN 'O' ELSE 'F' END, shipped, ordered + 30 + any_of(line, 63, 61)::int, received,
			one_of('{DELIVER IN PERSON,COLLECT COD,NONE,TAKE BACK RETURN}', line, 64),
			one_of('{REG AIR,AIR,RAIL,SHIP,TRUCK,MAIL,FOB}', line, 65), any_text(line, 66, 10, 43)
		FROM ($orders) o CROSS JOIN LATERAL ($lines) l"
	in_parallel "$n_orders" "INSERT INTO orders SELECT orderkey, c + c / 2 + 1, CASE WHEN shipped_all THEN 'F' WHEN shipped_some THEN 'P' ELSE 'O' END, total, ordered,
			one_of('{1-URGENT,2-HIGH,3-MEDIUM,4-NOT SPECIFIED,5-LOW}', o, 71), 'Clerk#' || lpad((1 + any_of(o, 72, $n_orders / 1500 + 1))::text, 9, '0'), 0,
			CASE WHEN any_of(o, 73, 80) = 0 THEN 'special requests ' || any_text(o, 74, 2, 61) ELSE any_text(o, 74, 19, 78) END
		FROM ($orders) o CROSS JOIN LATERAL (SELECT bool_and(shipped <= date '1995-06-17') AS shipped_all, bool_or(shipped <= date '1995-06-17') AS shipped_some,
				(sum((cents * (100 + tax) * (100 - discount)) / 10000) * 0.01) AS total FROM ($lines) l) t
			CROSS JOIN LATERAL (SELECT any_of(o, 75, $n_customers / 3 * 2) AS c) c"
	for t in region nation supplier customer orders lineitem; do
		sql -c "VACUUM (ANALYZE, FREEZE) $t" &
		pids+=($!)
	done
	for t in "${pids[@]}"; do wait "$t" || return 1; done
}

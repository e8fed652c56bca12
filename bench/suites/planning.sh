# planning.sh: how long queries of 2 to 12 tables take to plan, for auto_suite.sh.
#
# The tables are those of joins.sh.  In a star all tables join the fact table, by a column
# each; in a chain each joins the next one; in a clique all by the same column, so that
# any two can be joined.  PostgreSQL searches twelve tables with its genetic algorithm,
# unless it is told not to (exact).
. "$ROOT/bench/suites/joins.sh"

# from KIND N: tables t1 to tN, the first of which is f, and what joins them.
from()
{
	local columns=(0 0 k u a b c1 c2 c3 s k2 z v) tables="f t1" where="true" i

	for ((i = 2; i <= $2; i++)); do
		tables+=", d t$i"
		case $1 in
			star) where+=" AND t$i.id = t1.${columns[i]}" ;;
			chain) where+=" AND t$i.id = t$((i - 1)).$([ $i = 2 ] && echo k || echo x)" ;;
			clique) where+=" AND t$i.id = t1.k" ;;
		esac
	done
	echo "$tables WHERE $where"
}

list=
for kind in star chain clique; do
	for i in 2 4 8; do list+="$kind-$i|EXPLAIN (SUMMARY) SELECT t2.name, sum(t1.v) FROM $(from $kind $i) GROUP BY t2.name"$'\n'; done
	for exact in '' -exact; do
		if [ $kind$exact = clique-exact ]; then continue; fi
		list+="$kind-12$exact|${exact:+SET geqo = off; }EXPLAIN (SUMMARY) SELECT t2.name, sum(t1.v) FROM $(from $kind 12) GROUP BY t2.name"$'\n'
	done
done
list+="rows-8|EXPLAIN (SUMMARY) SELECT t2.name, t1.v FROM $(from star 8)"$'\n'
for i in 4 8; do
	list+="left-$i|EXPLAIN (SUMMARY) SELECT t1.s, count(*) FROM f t1$(for ((j = 2; j <= i; j++)); do echo " LEFT JOIN d t$j ON t$j.id = t$((j - 1)).$([ $j = 2 ] && echo k || echo x)"; done | tr -d '\n') GROUP BY t1.s"$'\n'
done
list=${list%$'\n'}

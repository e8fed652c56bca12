#!/bin/bash
# guards.sh [NAME …]: breaks the CUDA code, one thing at a time, in a copy, and
# sees that the tests notice.
#
# A test that cannot fail guards nothing.  Each break below is a mistake that
# somebody could make; the named test must print the named failure on the CPU
# (test/simt.h, no GPU or nvcc needed).  A break that no longer applies, because
# the code has changed, counts as failed: write it anew.
#
# Not part of "make check": a build and a run for each, some ten minutes in all.
# Ends with "N passed, N failed".
. "$(dirname "$0")/../scripts/lib.sh"

wanted=" $* "
passed=0 failed=0
new_tmpdir work
log=$work/log

# The first OLD of FILE becomes NEW; OLD is text, runs of white space being equal.
edit() # FILE OLD NEW
{
	FILE=$1 OLD=$2 NEW=$3 perl -0pi -e '
		my $old = join("\\s+", map { quotemeta } split(" ", $ENV{OLD}));
		s/$old/$ENV{NEW}/ or do { print STDERR "$ENV{FILE} has no \"$ENV{OLD}\"\n"; $? = 1; exit 1 };' "$work/src/$1" &&
		! cmp -s "$1" "$work/src/$1"
}

# guard NAME PROGRAM EXPECTED [FILE OLD NEW] …: with those edits a line of what
# PROGRAM prints (the first word table_test or device_test, the others its
# arguments) matches EXPECTED.
guard()
{
	local name=$1 program expected=$3 pid edited=yes
	read -ra program <<<"$2"
	shift 3

	[[ $wanted == "  " || $wanted == *" $name "* ]] || return 0
	step "$name"
	rm -rf "$work/src"
	mkdir "$work/src"
	cp -r gpu test bench "$work/src/"
	while [ $# -gt 0 ]; do
		edit "$1" "$2" "$3" || edited=no
		shift 3
	done
	if [ $edited = no ]; then
		note "FAILED: it cannot be broken so any more"
		failed=$((failed + 1))
		return 0
	fi
	if ! (cd "$work/src" && "build_${program[0]}") >"$log" 2>&1; then
		tail -20 "$log"
		note "FAILED: it does not compile"
		failed=$((failed + 1))
		return 0
	fi
	# As soon as it is red there is no need to wait for the end.
	(cd "$work/src" && exec timeout 300 stdbuf -oL "./${program[0]}" "${program[@]:1}") >"$log" 2>&1 &
	pid=$!
	while kill -0 $pid 2>/dev/null && ! grep -qE "$expected" "$log"; do sleep 0.5; done
	kill $pid 2>/dev/null || true
	wait $pid 2>/dev/null || true
	if grep -qE "$expected" "$log"; then
		grep -m1 -E "$expected" "$log" | sed 's/^/   red: /'
		passed=$((passed + 1))
	else
		tail -5 "$log"
		note "FAILED: no line with \"$expected\""
		failed=$((failed + 1))
	fi
}

CXXFLAGS="-std=c++17 -O1 -w -Igpu -Itest"
build_table_test() { ${CXX:-c++} $CXXFLAGS -x c++ -o table_test test/table_test.cu; }
build_device_test()
{
	${CXX:-c++} $CXXFLAGS -DRHH_CUDA_LOCAL_BYTES=4096 -DRHH_CUDA_UNIT_ROWS=300 -DRHH_CUDA_PIECE_ROWS=700 \
		-x c++ -c -o cuda.o gpu/cuda/rhh_cuda.cu &&
		${CXX:-c++} $CXXFLAGS -x c++ -c -o device_memory.o test/device_memory.cu &&
		${CC:-cc} -std=gnu11 -O1 -w -Igpu -DRHH_WITH_CUDA -c test/device/*.c gpu/*.c gpu/cpu/*.c &&
		${CXX:-c++} -o device_test ./*.o -lpthread -lm
}

BUCKETS=gpu/table/rhh_buckets.cuh
TABLE=gpu/table/rhh_table.cuh
KERNELS=gpu/table/rhh_table_kernels.cuh
BUILD=gpu/table/rhh_table_build.cuh
GROUPS_=gpu/cuda/rhh_groups.cuh

# ---------- rhh_buckets.cuh ----------

# (3): a holder of a displaced entry looks for its key too
LOOK='meeting = RHH_MEET_OTHER; do'
NO_LOOK='meeting = RHH_MEET_OTHER; if (carrying) bits = 0; do'
guard no-look-while-carrying table_test 'FAILED displaced keys' \
	$BUCKETS "$LOOK" "$NO_LOOK"
guard no-look-while-carrying-sql 'device_test cuda --tiny --only displacement_crowd' '^not ok .*came out twice without needs_merge' \
	$BUCKETS "$LOOK" "$NO_LOOK"

# (2): early exit
guard find-ends-early table_test 'FAILED .*wrong == 0' \
	$BUCKETS 'ends = rhh_ends_probe<S>(t, team, line, bucket, dist)' \
	'ends = rhh_ends_probe<S>(t, team, line, bucket, dist + 1)'
# which entry goes
guard displaces-the-poorest table_test 'FAILED' \
	$BUCKETS '< least ? key : least; } return tile.min(least);' \
	'< least ? key : least; } least = ~tile.min(~least); return least;'

# erasing: who fills the hole
guard shifts-another-than-the-poorest table_test 'FAILED' \
	$BUCKETS '(RHH_MAX_DIST + 1 - rank) << RHH_INDEX_BITS' 'rank << RHH_INDEX_BITS'
guard no-shift table_test 'FAILED' \
	$BUCKETS 'if (least == ~0u)' 'if (true)'
guard no-bucket-locks table_test 'FAILED|deadlock' \
	$BUCKETS 'while (atomicOr(&locks[bucket / 32], 1u << bucket % 32) >> bucket % 32 & 1)' 'while (false)'

# ---------- rhh::table ----------

guard hints-outlive-erasing table_test 'FAILED hints' \
	$KERNELS 'RHH_TRY(drop_hints(r.side, stream)); RHH_LAUNCH' 'RHH_LAUNCH' \
	$TABLE 'if (tile.rank == 0 && side->hints_made)' 'if (false)'
guard hints-outlive-own-erasing table_test 'FAILED device side erase' \
	$TABLE 'if (tile.rank == 0 && side->hints_made)' 'if (false)'
guard hints-too-high table_test 'FAILED' \
	$KERNELS 'atomicMin(&least[home - first], rank - 1)' 'atomicMin(&least[home - first], rank)'
guard value-lost-when-copies-meet table_test 'FAILED displaced keys' \
	$TABLE ': carrying ? r.reduce((Value) S::value(mine), old)' ': carrying ? old'
guard met-while-carrying-not-counted table_test 'FAILED displaced keys' \
	$KERNELS 'hits += o == RHH_MET || o == RHH_PLACED_MET' 'hits += o == RHH_MET'
guard orphans-not-handed-back table_test 'FAILED' \
	$KERNELS 'if (o == RHH_FAILED || o == RHH_PLACED_ORPHAN)' 'if (o == RHH_FAILED)'
guard empty-not-kept table_test 'FAILED' \
	$KERNELS 'if (i < end && S::is_empty(op.entry))' 'if (false)'
guard empty-not-kept-by-tiles table_test 'FAILED device side' \
	$TABLE 'if (*key == EMPTY) return insert_side<REDUCE>(tile, value);' ''
guard empty-not-found-by-tiles table_test 'FAILED device side' \
	$TABLE 'op.found = S::key(op.entry) != EMPTY;' 'op.found = false;'
guard swap-not-checked table_test 'FAILED' \
	$TABLE 'return done ? RHH_MEET_DONE : RHH_MEET_AGAIN' 'return RHH_MEET_DONE'

guard hints-outlive-own-inserts table_test 'FAILED hints are kept' \
	$TABLE 'if (tile.rank == 0 && side->hints_current != 0)' 'if (false)'

# ---------- merges ----------

guard merge-forgets-entries-behind table_test 'FAILED merges' \
	$BUILD '+ job.parts[part].reach * S::LANES' '+ 0'
guard merge-leaves-old-slots table_test 'FAILED merges' \
	$BUILD 'if (!empty && h < range)' 'if (false)'
guard merge-goes-past-the-ring table_test 'FAILED|simt|fault' \
	$BUILD 'return last && most > end ? end : most;' 'return most;'
guard merge-into-a-crowd table_test 'FAILED|no end in sight' \
	$BUILD 'if (rank > job.reach) return false;' '' \
	$BUILD 'return !full || job.reach == b.max_dist;' 'return true;'
guard merge-does-not-squeeze table_test 'FAILED frequent keys' \
	$BUILD 'if (n <= job.parts[part].room)' 'if (true)'
guard moved-entries-lost table_test 'FAILED' \
	$KERNELS '*(end - 1 - i)' '*(end - 1)'

# ---------- SQL's groups ----------

guard orphans-not-reconciled 'device_test cuda --tiny --only displacement_crowd' '^not ok' \
	gpu/cuda/rhh_cuda_finish.cuh 'if (n_orphans > 0) { uint32_t blocks' 'if (false) { uint32_t blocks'
guard displaced-copy-forgotten 'device_test cuda --tiny --only displacement_crowd' '^not ok' \
	$GROUPS_ 'rhh_append_orphan<S>(base::view, t, active && carrying, e)' \
	'rhh_append_orphan<S>(base::view, t, false, e)'

# ---------- aggregating in shared memory ----------

LARGE='device_test cuda --tiny --only large_batches'
AGGREGATE=gpu/cuda/rhh_aggregate.cuh
guard leftover-rows-forgotten "$LARGE" '^not ok' \
	$AGGREGATE 'if (slot != RHH_NO_GROUP && rhh_record(local, 0, slot)[1] == 0)' 'if (false)'
guard leftover-rows-by-wrong-number "$LARGE" '^not ok' \
	$AGGREGATE 'uint32_t id = rhh_row_id(rows, row)' 'uint32_t id = row'
guard stash-not-entered "$LARGE" '^not ok' \
	$AGGREGATE 'if (local.n_slots == 0) return; rhh_begin_tally' 'return; rhh_begin_tally'
guard copies-not-folded "$LARGE" '^not ok' \
	$AGGREGATE 'for (uint32_t c = 1; c < local.n_copies; c++)' 'for (uint32_t c = 1; false; c++)'
guard nulls-not-moved "$LARGE" '^not ok' \
	$AGGREGATE '(uint8_t) rhh_is_null(rows, c, unit.first + i)' '(uint8_t) 0'
guard split-parts-forgotten "$LARGE" '^not ok' \
	$AGGREGATE 'if (entering == RHH_ENTER_SPLIT && units.n_units[1] == 0)' 'if (entering == RHH_ENTER_SPLIT)'

# ---------- joins ----------

KEPT=gpu/cuda/rhh_kept.cuh
JOINS=gpu/cuda/rhh_joins.cuh
PROBE=gpu/cuda/rhh_probe.cuh
PAGES=gpu/rhh_pages.h
PAGES_KERNEL=gpu/cuda/rhh_read_pages.cuh
PLAIN_KERNEL=gpu/cuda/rhh_read_plain.cuh
PIECES=gpu/cuda/rhh_cuda_join.cuh
guard null-keys-kept 'device_test cuda --tiny --only join_nulls' '^not ok' \
	$KEPT 'keep[k] = !rhh_is_null(rows, kept.plan.column[c], (uint32_t) row)' 'keep[k] = true'
guard kept-keys-not-compared 'device_test cuda --tiny --only join_collisions' '^not ok' \
	$KEPT 'return plan.form == RHH_KEY_WIDE || packed == key' 'return true'
guard kept-wide-keys-not-compared 'device_test cuda --tiny --only join_collisions' '^not ok' \
	$KEPT 'low[0] != low[1] ||' ''
guard search-ends-at-the-last-slot 'device_test cuda --tiny --only join_[sf]*' '^not ok' \
	$KEPT 'return found; if (++slot == kept.n_slots) slot = 0' \
	'return found; if (++slot == kept.n_slots) return RHH_NO_ROW'
guard left-join-drops-rows 'device_test cuda --tiny --only join_kinds' '^not ok' \
	$JOINS 'case RHH_JOIN_LEFT: return true' 'case RHH_JOIN_LEFT: return tuple->rows[1 + j] != RHH_NO_ROW'
guard probe-ends-at-full-buckets 'device_test cuda --tiny --only join_[sf]*' '^not ok' \
	$PROBE 'if (++key->bucket == join.n_buckets)' 'key->pending = false; if (++key->bucket == join.n_buckets)'
guard probed-keys-not-compared 'device_test cuda --tiny --only join_collisions' '^not ok' \
	$PROBE 'if (join.verifies && rows[k]' 'if (false && rows[k]'
guard probed-left-join-drops-rows 'device_test cuda --tiny --only join_kinds' '^not ok' \
	$PROBE 'if (join.kind != RHH_JOIN_LEFT && found[k]' 'if (found[k]'
guard carried-bytes-of-other-columns 'device_test cuda --tiny --only join_*' '^not ok' \
	$PROBE 'from.at >= kept.carried_at && from.at + from.bytes <= kept.carried_at + kept.carried_bytes' 'true'
guard direct-index-without-its-last-slot 'device_test cuda --tiny --only join_*' '^not ok' \
	$KEPT 'return slot < kept.n_slots ?' 'return slot + 1 < kept.n_slots ?'
guard probed-direct-index-without-its-last-slot 'device_test cuda --tiny --only join_dense' '^not ok' \
	$PROBE 'at < join.n_slots' 'at + 1 < join.n_slots'
guard direct-index-forgets-equal-keys 'device_test cuda --tiny --only join_dense' '^not ok' \
	$KEPT '? slot : NULL;' '? slot : slot;'
guard direct-index-carries-another-row 'device_test cuda --tiny --only join_dense' '^not ok' \
	$KEPT 'rhh_carried_bytes(kept, row) << 32 | row' 'rhh_carried_bytes(kept, 0) << 32 | row'
guard rows-of-bad-pages-stay 'device_test cuda --tiny --only pages_*' '^not ok' \
	$PAGES_KERNEL 'notes->any_bad = 1;' ''
guard pages-without-their-order 'device_test cuda --tiny --only pages_no_joins' '^not ok' \
	$PAGES_KERNEL 'page.first_row + rhh_page_rank(page.visible, item)' 'page.first_row + item % page.n_rows'
guard rows-of-bad-pages-of-the-cache-stay 'device_test cuda --tiny --only pages_cached' '^not ok' \
	$PAGES_KERNEL 'outcomes[p + t].bad = RHH_PAGE_UNREAD; notes->any_bad = 1;' ';'
guard pages-of-the-cache-filtered-again 'device_test cuda --tiny --only pages_cached' '^not ok' \
	$PAGES_KERNEL 'page.n_rows = rows; page.filtered = 1;' 'page.n_rows = rows;'
guard rows-of-a-run-in-one-place 'device_test cuda --tiny --only pages_cached' '^not ok' \
	$PAGES_KERNEL 'base = atomicAdd(&counts->placed, all);' 'base = 0;'
guard rows-of-the-first-page-of-a-run 'device_test cuda --tiny --only pages_cached' '^not ok' \
	$PAGES_KERNEL 'i >= in_hand[1].first_item' 'false'
guard lines-of-dropped-rows 'device_test cuda --tiny --only pages_cached' '^not ok' \
	$PAGES_KERNEL 'if (of.lines == of.page.n_rows)' ''
guard bad-rows-of-the-cache 'device_test cuda --tiny --only pages_*' '^not ok' \
	$PAGES_KERNEL 'in_hand->bad = true;' ';'
guard nulls-of-pages-forgotten 'device_test cuda --tiny --only pages_no_joins' '^not ok' \
	$PAGES_KERNEL 'rhh_note_column(&noted->nulls, c);' ';'
guard pages-of-dropped-rows-in-one-place 'device_test cuda --tiny --only pages_*' '^not ok' \
	$PAGES_KERNEL 'n > 0 ? atomicAdd(&counts->placed, n) : 0' '0'
guard copies-of-the-first-bytes 'device_test cuda --tiny --only pages_cached' '^not ok' \
	$PAGES_KERNEL 'good && in_hand->slot == RHH_NO_SLOT && !(fresh' 'good && !(fresh'
guard pages-filtered-again 'device_test cuda --tiny --only pages_*' '^not ok' \
	$PAGES_KERNEL 'page.filtered = 1;' ''
guard rows-dropped-though-the-filter-is-bad 'device_test cuda --tiny --only pages_*' '^not ok' \
	$PAGES_KERNEL 'if ((flags & RHH_BAD) != 0) return false; *all' '*all'
guard ranges-with-their-ends 'device_test cuda --tiny --only pages_*' '^not ok' \
	gpu/cuda/rhh_page_plan.cuh 'c + (op->code == RHH_OP_LT_INT8)' 'c'
guard cells-used-too-early 'device_test cuda --tiny --only pages_*' '^not ok' \
	gpu/cuda/rhh_page_plan.cuh 'if (last == at &&' 'if ('
guard pages-of-the-cache-not-told 'device_test cuda --tiny --only pages_cached' '^not ok' \
	gpu/cuda/rhh_cuda_pages.cuh 'return rhh_launch_tell_pages(t, i, lane->up) &&' 'return'
guard pages-read-before-they-are-known 'device_test cuda --tiny --only pages_*' '^not ok' \
	gpu/cuda/rhh_cuda_pages.cuh 'RHH_CUDA(t->dev, cudaStreamWaitEvent, t->lane->up, t->dev->copied, 0)' 'true'
guard rows-taken-before-they-are-uploaded 'device_test cuda --tiny --only one_row' '^not ok' \
	gpu/cuda/rhh_cuda_batch.cuh '!RHH_CUDA(dev, cudaStreamWaitEvent, lane->run, lane->uploaded[i], 0) || !RHH_CUDA(dev, cudaEventRecord, lane->batch[i].start, lane->run) || !RHH_CUDA(dev, cudaMemsetAsync, &lane->ctl->refused[i]' \
	'!RHH_CUDA(dev, cudaEventRecord, lane->batch[i].start, lane->run) || !RHH_CUDA(dev, cudaMemsetAsync, &lane->ctl->refused[i]'
guard places-of-the-batch-before 'device_test cuda --tiny --only pages_*' '^not ok' \
	$PAGES_KERNEL 'atomicExch(&counts->placed, 0)' 'counts->placed'
guard counts-of-the-map-before 'device_test cuda --tiny --only pages_*' '^not ok' \
	gpu/cuda/rhh_cuda.cu '(spec->max_page_bytes > 0 &&' '(false &&'
guard blocks-of-the-batch-before 'device_test cuda --tiny --only pages_*' '^not ok' \
	$PAGES_KERNEL 'counts->n_ended = 0;' ''
guard pages-that-the-batch-before-has-taken 'device_test cuda --tiny --only pages_*' '^not ok' \
	$PAGES_KERNEL 'counts->n_taken = counts->n_copied = 0;' '{}'
guard copies-of-what-is-not-visible 'device_test cuda --tiny --only pages_*' '^not ok' \
	$PAGES_KERNEL 'good = rhh_end_all_visible(in_hand, from, rhh_page_lines(page.visible));' ';'
guard copies-that-were-there-before 'device_test cuda --tiny --only pages_*' '^not ok' \
	$PAGES_KERNEL 'known->all_visible = good ? (uint16_t) has : 0;' 'if (good) known->all_visible = (uint16_t) has;'
guard parts-without-the-rest-of-longer-rows 'device_test cuda --tiny --only pages_*' '^not ok' \
	$PAGES_KERNEL 'rhh_copy_longer(in_hand, from, parts);' ';'
guard limbs-that-are-not-0 'device_test cuda --tiny --only pages_limbs' '^not ok' \
	$PAGES_KERNEL 'rhh_note_column(&noted->limbs, step.column);' ';'
guard sums-of-128-bits-by-half 'device_test cuda --tiny --only sum_i128_overflow' '^not ok' \
	gpu/cuda/rhh_groups.cuh '(uint32_t) st.word + st.n_words' 'st.word + 1u'
guard maxima-beside-sums 'device_test cuda --tiny --only sum_i128_overflow' '^not ok' \
	gpu/cuda/rhh_groups.cuh 'rhh_raise(words[k] + st.max_word, (int64_t) values[k]);' ';'
guard maxima-of-blocks 'device_test cuda --tiny --only sum_i128_overflow' '^not ok' \
	gpu/cuda/rhh_groups.cuh 'rhh_raise(into + st.max_word, (int64_t) from[st.max_word]);' ';'
guard offsets-behind-a-varlena 'device_test cuda --tiny --only pages_values' '^not ok' \
	$PAGES 'attribute < last_known ? attribute : last_known' 'attribute'
guard decimals-of-another-scale 'device_test cuda --tiny --only pages_values' '^not ok' \
	gpu/rhh_decimals.h '(header & 0xdf80) != reader->header ||' ''
guard copies-with-fewer-attributes 'device_test cuda --tiny --only pages_found' '^not ok' \
	$PAGES_KERNEL 'known->all_visible <= n_attributes' 'known->all_visible == 0'
guard plain-rows-with-nulls 'device_test cuda --tiny --only pages_plain' '^not ok' \
	$PLAIN_KERNEL '(words[k] >> 32 & 1) == 0 &&' ''
guard plain-rows-that-lack-attributes 'device_test cuda --tiny --only pages_plain' '^not ok' \
	$PLAIN_KERNEL '((uint32_t) (words[k] >> 16) & 0x07ff) >= plan.plain_attributes ?' 'true ?'
guard plain-lengths-not-checked 'device_test cuda --tiny --only pages_plain' '^not ok' \
	$PLAIN_KERNEL 'header + plan.plain_bytes <= pointers[k] >> 17 &&' ''
guard plain-rows-without-those-before 'device_test cuda --tiny --only pages_plain' '^not ok' \
	$PLAIN_KERNEL 'row[k] = before + (uint32_t)' 'row[k] = (uint32_t)'
guard plain-pages-with-fewer-attributes 'device_test cuda --tiny --only pages_found' '^not ok' \
	$PLAIN_KERNEL '>> 16 <= n_attributes' '>> 16 == 0'
guard plain-line-pointers-behind-the-last 'device_test cuda --tiny --only pages_plain' '^not ok' \
	$PLAIN_KERNEL '24 + 4 * of->lines > lower ||' ''
guard plain-rows-in-one-place 'device_test cuda --tiny --only pages_plain' '^not ok' \
	$PLAIN_KERNEL 'placed = atomicAdd(&counts->placed, of.n_rows);' 'placed = 0;'
guard plain-rows-of-bad-pages-stay 'device_test cuda --tiny --only pages_plain' '^not ok' \
	$PLAIN_KERNEL 'notes->any_bad = 1;' ''
guard plain-pages-not-told 'device_test cuda --tiny --only pages_plain' '^not ok' \
	$PLAIN_KERNEL 'of->told = fresh || (finds && (marks & 0xffff) == 0);' 'of->told = false;'
guard plain-line-pointers-not-checked 'device_test cuda --tiny --only pages_garbage' '^not ok' \
	$PLAIN_KERNEL '(pointers[k] & 0x18007) == 0x8000' '(pointers[k] & 0x10007) == 0'
guard plain-values-of-another-width 'device_test cuda --tiny --only pages_plain' '^not ok' \
	$PLAIN_KERNEL 'c.from == 4 && c.to == 4' 'c.from == 4'
guard spilled-rows-twice 'device_test cuda --tiny --only join_*' '^not ok' \
	$PIECES 'spill->n_returned = n_returned;' ''
guard pieces-change-their-size 'device_test cuda --tiny --only join_condition_unmatched_refused' '^not ok' \
	$PIECES 'batch->from.at[RHH_MAX_JOINS] == 0 ? t->joins->small_pieces' 'true ? t->joins->small_pieces'
guard long-strings-as-short-ones 'device_test cpu --tiny --only pages_values' '^not ok' \
	$PAGES '*first = *last = ~(uint64_t) 0;' ''
guard lengths-in-pages-not-checked 'device_test cuda --tiny --only pages_broken' '^not ok' \
	$PAGES 'length == 0 || length > tuple->n_bytes - begin' 'length == 0' \
	$PAGES 'if (begin + length > tuple->n_bytes) return false;' ''
guard fixed-offsets-in-spite-of-nulls 'device_test cuda --tiny --only pages_*' '^not ok' \
	$PAGES 'tuple->present == NULL && attribute < tuple->n_attributes' 'attribute < tuple->n_attributes'
guard groups-left-out-though-rows-were-refused 'device_test cuda --tiny --only conditions_refused' '^not ok' \
	gpu/cuda/rhh_cuda_finish.cuh 'if (t->stats.refused_rows > 0)' 'if (false)'
guard exceptions-of-conditions-forgotten 'device_test cuda --tiny --only conditions' '^not ok' \
	gpu/cuda/rhh_kernels.cuh 'condition.except_state >= 0 &&' 'false &&'
guard refused-rows-of-the-first-page 'device_test cpu --tiny --only pages_grouped' '^not ok' \
	$PAGES 'row = page->first_row;' 'row = 0;'
guard rows-of-who-may-not-have-committed 'device_test cpu --tiny --only pages_found' '^not ok' \
	$PAGES '(rhh_page_2_bytes(page + offset + 20) & 0x0100) != 0' 'true'
guard tuples-that-were-not-there 'device_test cuda --tiny --only pages_found' '^not ok' \
	$PAGES 'offset >= header >> 48 &&' ''
guard places-that-some-threads-see-too-early 'device_test cuda --tiny --only pages_found' '^not ok' \
	$PAGES_KERNEL '!plan.has_filter && !filtered))' '!plan.has_filter && page.filtered == 0))'
COLUMNS=gpu/cpu/rhh_cpu_columns.c
CPU_PAGES=gpu/cpu/rhh_cpu_pages.c
guard columns-of-other-pages 'device_test cpu --tiny --only pages_cached' '^not ok' \
	$COLUMNS 'chunk->stale = true; else free_columns(cache, chunk);' 'chunk->stale = true;'
guard columns-of-other-attributes 'device_test cpu --tiny --only pages_cached' '^not ok' \
	$COLUMNS 'sources[i].load.attribute = load->attribute;' ''
guard nulls-of-kept-columns 'device_test cpu --tiny --only pages_cached' '^not ok' \
	$CPU_PAGES '(column->nulls & pages) != 0 ? column->null_rows : NULL' 'NULL'
guard nulls-of-kept-inputs 'device_test cpu --tiny --only pages_*' '^not ok' \
	$CPU_PAGES 'if ((from->nulls & pages) != 0)' 'if (false)'
guard bad-pages-of-kept-columns 'device_test cpu --tiny --only pages_cached' '^not ok' \
	$CPU_PAGES '(r->kept[i]->bad & pages) != 0 ||' ''
guard dropped-rows-of-kept-columns 'device_test cpu --tiny --only pages_cached' '^not ok' \
	$CPU_PAGES 'drop_rows(&segment[p], dropped, row);' ''
guard plain-rows-in-spite-of-nulls 'device_test cpu --tiny --only pages_cached' '^not ok' \
	$COLUMNS 'tuple.present != NULL || tuple.n_attributes' 'tuple.n_attributes'
guard small-numbers-one-bit-too-many 'device_test cpu --tiny --only join_program_operations' '^not ok' \
	gpu/rhh_program.c '(rhh_bits_of(value) + 1)' 'rhh_bits_of(value)'
guard small-numbers-though-they-are-not 'device_test cpu --tiny --only join_program_operations' '^not ok' \
	gpu/rhh_program.c 'bits_of(a, n) + bits_of(b, n)' 'bits_of(a, n)'
guard groups-left-out-beside-orphans 'device_test cpu --tiny --only conditions_orphans' '^not ok' \
	gpu/cpu/rhh_cpu.c 'map->n_conditions > 0 && n_orphans == 0' 'map->n_conditions > 0'
guard matches-of-one-map 'device_test cuda --tiny --only join_unmatched_shared' '^not ok' \
	gpu/cuda/rhh_cuda_join.cuh '(build->spec.flags & RHH_SHARE_MATCHES) == 0)' 'true)'
guard matches-of-one-map-on-cpu 'device_test cpu --tiny --only join_unmatched_shared' '^not ok' \
	gpu/cpu/rhh_cpu_join.c 'rhh_returns_unmatched(join->kind) && join->build->matched == NULL' 'rhh_returns_unmatched(join->kind)'
guard rows-of-few-groups-counted-twice 'device_test cpu --tiny --only duplicates' '^not ok' \
	gpu/cpu/rhh_cpu_batch.c 'EACH_GROUP(state[0] += end - i; i = end)' 'EACH_GROUP(state[0] += end - i)'
guard nulls-not-copied 'device_test cpu --tiny --only pages*' '^not ok' \
	gpu/cpu/rhh_cpu_pages.c 'any_bit(null_rows, first,' 'false && any_bit(null_rows, first,'
guard null-of-an-operand-forgotten 'device_test cpu --tiny --only join_program*' '^not ok' \
	gpu/rhh_program.c 'to->clean = a->clean && (b == NULL || b->clean)' 'to->clean = a->clean'
guard pages-that-cannot-be-registered 'device_test cuda --tiny --only pages_unreadable' '^not ok' \
	gpu/cuda/rhh_cuda_pages.cuh 'return dev->pages_failed == cudaSuccess; }' 'return true; }'
guard lengths-of-strings-not-checked 'device_test cpu --tiny --only pages_values' '^not ok' \
	$PAGES 'if (length > RHH_PAGE_STRING_BYTES)' 'if (false)'
guard nan-as-it-is-stored 'device_test cpu --tiny --only pages_values' '^not ok' \
	$PAGES '(bits & (sign - 1)) > infinity' 'false'
guard refused-rows-of-pages-forgotten 'device_test cpu --tiny --only pages_grouped' '^not ok' \
	$PAGES 'page->bad = RHH_PAGE_REFUSED;' ''
guard positions-of-later-stages-stay 'device_test cuda --tiny --only join_*' '^not ok' \
	$PIECES '*at = 0;' ''
guard refused-nulls-forgotten 'device_test cuda --tiny --only join_refused' '^not ok' \
	$JOINS 'if (rhh_is_null(rows, c, row)) atomicOr' 'if (false) atomicOr'
guard matches-not-marked 'device_test cuda --tiny --only join_kinds' '^not ok' \
	$JOINS 'step.matched[row] = 1' ''
guard matches-come-once-more 'device_test cuda --tiny --only join_kinds' '^not ok' \
	$JOINS 'return (plan.joins[stage.side - 1].matched[stage.first_row + i] != 0) ==' 'return true ||'
guard right-semi-returns-the-others 'device_test cuda --tiny --only join_kinds' '^not ok' \
	$JOINS '(plan.joins[stage.side - 1].kind == RHH_JOIN_RIGHT_SEMI)' 'false'
guard only-one-of-each-lane-marked 'device_test cuda --tiny --only join_fan_out' '^not ok' \
	$JOINS 'for (uint32_t i = lane; i < n_theirs; i += RHH_WARP_SIZE)' 'for (uint32_t i = lane; i < RHH_WARP_SIZE; i += RHH_WARP_SIZE)'
guard candidates-of-a-key-are-marked 'device_test cuda --tiny --only join_condition_kinds' '^not ok' \
	$JOINS 'if (alive && tuple.rows[stage.end_join] != RHH_NO_ROW) rhh_mark_matched(' \
	'if (o < n && tuple.rows[stage.end_join] != RHH_NO_ROW) rhh_mark_matched('
guard candidates-of-a-key-are-marked-at-once 'device_test cuda --tiny --only join_condition_kinds' '^not ok' \
	$JOINS 'if (!asks || rhh_is_match(plan, batch, j, *tuple))' 'if (true)'
guard null-keys-match 'device_test cuda --tiny --only join_nulls' '^not ok' \
	$KEPT 'if (kept.keeps_null_keys &&' 'if (false &&'
guard missing-sides-not-null 'device_test cuda --tiny --only join_several' '^not ok' \
	$PIECES 'if (!has_nulls && from->side >= f->batch.unmatched)' 'if (!has_nulls)'
guard condition-passes-null 'device_test cuda --tiny --only join_condition_kinds' '^not ok' \
	$JOINS 'return results.flags[filter] == 0 && results.words[filter][0] != 0' 'return results.words[filter][0] != 0'
guard candidates-are-matches 'device_test cuda --tiny --only join_condition_kinds' '^not ok' \
	$JOINS 'tuple->rows[1 + j] = any ? found : RHH_NO_ROW' 'tuple->rows[1 + j] = found'
guard match-of-another-lane 'device_test cuda --tiny --only join_condition_fan_out' '^not ok' \
	$JOINS 'if ((int) lane == leader) any = any_theirs' 'any = any || any_theirs'
guard candidates-go-on 'device_test cuda --tiny --only join_condition_several' '^not ok' \
	$JOINS 'if (!COLUMNS && !alive) tuple.rows[0] = RHH_DROPPED' ''
guard rows-without-a-match-are-dropped 'device_test cuda --tiny --only join_condition_unmatched' '^not ok' \
	$JOINS '#define RHH_DROPPED 0xFFFFFFFEu' '#define RHH_DROPPED RHH_NO_ROW'
guard rows-for-conditions-forgotten 'device_test cuda --tiny --only join_condition_several' '^not ok' \
	$PIECES 'if (plan->joins[j].condition_columns[c].side == side) return true' ''
guard rows-of-other-parts-come-out 'device_test cuda --tiny --only join_passes' '^not ok' \
	$JOINS 'alive = !rhh_is_of_other_part(step.build, load);' ''
guard nulls-come-out-in-each-pass 'device_test cuda --tiny --only join_passes' '^not ok' \
	gpu/cuda/rhh_kept.cuh 'return kept.part != 0;' 'return false;'
guard rows-of-other-parts-kept 'device_test cuda --tiny --only join_passes' '^not ok' \
	gpu/cuda/rhh_kept.cuh 'keep[k] = !rhh_is_of_other_part(kept, load);' ''
# what comes out of joins is kept
guard kept-as-many-as-there-may-be 'device_test cuda --tiny --only join_kept' '^not ok' \
	gpu/cuda/rhh_kept.cuh 'const uint32_t n_rows = rhh_n_rows(rows);' 'const uint32_t n_rows = rows.n_rows;'
guard missing-rows-not-told 'device_test cuda --tiny --only join_kept_refused' '^not ok' \
	gpu/cuda/rhh_cuda.cu 'rhh_resolve(t, i, RHH_OK, f->n_refused); return true; } if (n_refused > 0 && t->kept == NULL' \
	'rhh_resolve(t, i, RHH_OK, 0); return true; } if (n_refused > 0 && t->kept == NULL'
guard only-one-piece-kept 'device_test cpu --tiny --only join_kept_chain' '^not ok' \
	gpu/cpu/rhh_cpu.c 'while (!cmd->join->at_end && cmd->join->n_bad == 0' 'while (false && cmd->join->n_bad == 0'
CPU_JOINS=gpu/cpu/rhh_cpu_join.c
guard rows-of-other-parts-are-missing 'device_test cpu --tiny --only join_passes' '^not ok' \
	$CPU_JOINS 'count[i] = level->other[i] ? 0 : count[i];' ';'
guard rows-of-other-parts-match-no-condition 'device_test cpu --tiny --only join_passes_condition' '^not ok' \
	$CPU_JOINS '!(rhh_cpu_has_parts(join->build) && level->other[at])' 'true'
guard candidates-are-marked-too 'device_test cpu --tiny --only join_condition_kinds' '^not ok' \
	$CPU_JOINS 'if (is_match && join->matched != NULL &&' 'if (record != missing && join->matched != NULL &&'
guard match-forgotten-between-pieces 'device_test cpu --tiny --only join_condition_returned' '^not ok' \
	$CPU_JOINS 'if (state->levels[depth].had_match)' 'if (false)'
guard bad-candidates-not-counted 'device_test cuda --tiny --only join_condition_bad' '^not ok' \
	$JOINS 'if ((results.flags[filter] & RHH_BAD) != 0) atomicAdd((unsigned long long *) plan.bad_candidates, 1ULL);' ''
guard bad-behind-a-match-not-looked-at 'device_test cuda --tiny --only join_condition_bad' '^not ok' \
	$PIECES 'plan->joins[j].looks_at_all = rhh_program_may_be_bad(spec->joins[j].condition) &&' 'plan->joins[j].looks_at_all = false &&'
guard bad-behind-a-match-not-looked-at-cpu 'device_test cpu --tiny --only join_condition_bad' '^not ok' \
	$CPU_JOINS 'if (matched && !join->may_be_bad &&' 'if (matched &&'
guard rows-without-candidates-are-bad 'device_test cpu --tiny --only join_condition_bad' '^not ok' \
	$CPU_JOINS 'rhh_cpu_bit(bad, i) && pairs->record[i] != join->build->n_rows' 'rhh_cpu_bit(bad, i)'
guard missing-sides-are-zero 'device_test cpu --tiny --only join_condition_unmatched' '^not ok' \
	$CPU_JOINS 'if (source->side < batch->unmatched) return true;' ''
guard match-of-rows-without-one-forgotten 'device_test cpu --tiny --only join_condition_unmatched_returned' '^not ok' \
	$CPU_JOINS '(from[j + 1] & HAD_MATCH) != 0;' '(from[j + 1] & HAD_MATCH) != 0 && state->base == 0;'
guard match-forgotten-between-looks 'device_test cpu --tiny --only join_condition_fan_out' '^not ok' \
	$CPU_JOINS 'level->had_match = matched' 'level->had_match = false'
PROGRAM=gpu/rhh_program.h
guard other-branch-makes-rows-bad 'device_test cuda --tiny --only join_program_logic' '^not ok' \
	$PROGRAM '(first ? b_flags : c_flags)' '(b_flags | c_flags)'
guard bad-operand-of-and-forgotten 'device_test cuda --tiny --only join_program_logic' '^not ok' \
	$PROGRAM '(by_a ? 0 : b_flags & RHH_BAD)' '0'
guard filter-drops-bad-rows 'device_test cuda --tiny --only join_program_filter' '^not ok' \
	$JOINS '(results.flags[filter] & RHH_BAD) != 0 ||' ''
guard filter-keeps-null 'device_test cuda --tiny --only join_program_filter' '^not ok' \
	$JOINS '(results.flags[filter] == 0 && results.words[filter][0] != 0)' 'results.words[filter][0] != 0'
guard filtered-rows-leave-holes 'device_test cuda --tiny --only join_program_filter' '^not ok' \
	$JOINS 'at += block_at' 'at = (uint32_t) o'

# ---------- transition states ----------

guard carry-lost 'device_test cuda --tiny --only states' '^not ok' \
	$GROUPS_ '+ value < value) carry = 1' '+ value < value) carry = 0'
guard rounding-forgotten 'device_test cuda --tiny --only floats' '^not ok' \
	$GROUPS_ 'low += rhh_sum_error(old, high, old + high)' 'low += 0'
guard moments-not-merged 'device_test cuda --tiny --only floats' '^not ok' \
	$GROUPS_ 'if (from[4] != 0)' 'if (false)'
guard bits-not-merged 'device_test cuda --tiny --only floats' '^not ok' \
	$GROUPS_ 'if (from[0] != 0) atomicXor' 'if (false) atomicXor'
guard float-flags-not-merged 'device_test cuda --tiny --only floats' '^not ok' \
	$GROUPS_ 'rhh_set_bits(into + 1, from[1])' ';'

echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]

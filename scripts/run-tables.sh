#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What ./run tables shows once the programs are built: the table lineitem on a memory node, and
# queries of it that run beside the memory, each beside the same query over all rows pulled across
# the connection, by READs of the node's memory; encrypted ones with their key, which stays at the
# client. The answers of both must be equal. Leaves the node running, with commands to try.
#
# Schema, ranges and dependencies of lineitem are those that TPC-H publishes; the numbers are drawn
# by a generator of our own (src/lineitem), so no result of this is a TPC result.
#
# ESPALIER_RUN_SCALE  1 is 6 million rows, 0.9 GiB, and as much again encrypted; default 1
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/common.sh
source scripts/run-node.sh

scale=${ESPALIER_RUN_SCALE:-1}
espalier=build/release/bin/espalier
lineitem=build/release/bin/lineitem
run_fabric=shm:$run_folder/fabric.sock
key=$run_folder/key
answers=$run_folder/answers

export ESPALIER_AT=$run_fabric

# The queries: a name, and what is asked.
names=("Q6: one sum of a year" "Q1: sums by group" "LIKE over comments"
  "distinct, two columns" "rows of an encrypted table")
queries=(
  "select sum(l_extendedprice * l_discount) as revenue from lineitem
   where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'
     and l_discount between 0.05 and 0.07 and l_quantity < 24"
  "select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty,
          sum(l_extendedprice) as sum_base_price,
          sum(l_extendedprice * (1 - l_discount)) as sum_disc_price,
          sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge,
          avg(l_quantity) as avg_qty, avg(l_extendedprice) as avg_price,
          avg(l_discount) as avg_disc, count(*) as count_order
   from lineitem where l_shipdate <= date '1998-09-02' group by l_returnflag, l_linestatus"
  "select count(*), sum(l_quantity) as sum_qty from lineitem
   where l_comment like '%brave%copper%lamps%'"
  "select distinct l_shipinstruct, l_shipmode from lineitem"
  "select l_orderkey, l_linenumber, l_extendedprice, l_comment from lineitem_secret
   where l_quantity = 50 and l_discount = 0.10 and l_shipmode = 'AIR'
     and l_shipdate between date '1995-01-01' and date '1995-12-31'"
)

# What a query says of itself: its time, and the bytes that came.
taken() { sed -n 's/^.* in \(.*\); .* read .*$/\1/p' "$1" | tail -n 1; }
moved() { sed -n 's/^.* read .*, \(.*\) sent$/\1/p' "$1" | tail -n 1; }

# Runs a query in one way, which names the files of its answer and of what it says of itself.
ask() {
  local way=$1
  shift
  if ! "$espalier" table query --format csv "$@" >"$answers.$way" 2>"$answers.$way.log"; then
    cat "$answers.$way.log" >&2
    return 1
  fi
}

# Makes a table and loads it from the generator; what follows its name are flags of both commands.
load() {
  local table=$1 create=$2
  shift 2
  # shellcheck disable=SC2086  # one flag or none
  "$espalier" table create "$table" "$("$lineitem" schema)" $create
  "$lineitem" "$scale" | "$espalier" table load "$table" - "$@"
}

# Asks a query in both ways, shows it, and adds a line to the table of the end.
show() {
  local name=$1 query=$2 rows
  shift 2
  step "$name"
  printf '%s\n\n' "$query"
  ask pushed "$query" "$@"
  head -n 6 "$answers.pushed"
  rows=$(($(wc -l <"$answers.pushed") - 1))
  [[ "$rows" -le 5 ]] || echo "... $rows rows"
  ask pulled "$query" "$@" --pull --one-sided
  if ! cmp "$answers.pushed" "$answers.pulled" >&2; then
    echo "the answers differ; they are in $answers.pushed and $answers.pulled" >&2
    return 1
  fi
  printf '%-26s %10s %12s   %10s %12s\n' "$name" \
    "$(taken "$answers.pushed.log")" "$(moved "$answers.pushed.log")" \
    "$(taken "$answers.pulled.log")" "$(moved "$answers.pulled.log")" >>"$answers.table"
}

if ! [[ "$scale" =~ ^[0-9]+(\.[0-9]+)?$ ]] ||
  ! awk -v s="$scale" 'BEGIN { exit !(s >= 0.0001 && s <= 100) }'; then
  echo "ESPALIER_RUN_SCALE=$scale is no scale from 0.0001 to 100; 1 is 6 million rows" >&2
  exit 2
fi

step "a memory node, and in it lineitem at scale $scale: CSV through a pipe"
stop_run_node
start_run_node --node-fabric "$run_fabric" --node-one-sided on
trap stop_run_node EXIT
rm -f "$answers".* "$key"
(umask 077 && od -An -N16 -tx1 /dev/urandom | tr -d ' \n' >"$key")
load lineitem ""
step "the same rows once more, encrypted before they leave the command"
load lineitem_secret --encrypted --key-file "$key"
"$espalier" table describe lineitem | sed -n 1,3p

for i in "${!queries[@]}"; do
  flags=()
  [[ "${names[i]}" != *encrypted* ]] || flags=(--key-file "$key")
  show "${names[i]}" "${queries[i]}" "${flags[@]}"
done

step "beside the memory (pushed), and with all rows read across the connection first (pulled)"
printf '%-26s %10s %12s   %10s %12s\n' "" pushed "" pulled "" query time "bytes moved" time \
  "bytes moved"
cat "$answers.table"
echo "Both answers were equal each time. Pulled rows were read out of the node's memory by READs,"
echo "and encrypted ones decrypted by the client, whose key did not travel for that."

trap - EXIT
cat <<END

A node is running, and holds lineitem and lineitem_secret:
  address  $run_fabric, and $run_address
  process  $(cat "$run_pid_file"), in $run_pid_file; it sleeps while nobody asks
  log      $run_log
  to stop  kill \$(cat $run_pid_file)        (the next ./run replaces it)

Try it:
  export ESPALIER_AT=$run_fabric PATH="\$PWD/build/release/bin:\$PATH"
  espalier table describe lineitem
  espalier table query 'select l_shipmode, count(*) from lineitem group by l_shipmode'
  espalier table query --explain "select * from lineitem where l_comment ~ '^calm' limit 3"
  espalier table query --key-file $key 'select count(*) from lineitem_secret'
  espalier table query --pull --one-sided 'select count(*) from lineitem'
  espalier table export lineitem | head -n 3
  espalier stats --table lineitem
  espalier top

Where to go from here:
  docs/tables.md                   from your own CSV file to answers; types, keys, C++
  docs/queries.md                  what a query may be
  espalier-bench table --help      the same beside other ways of doing it
  docs/benchmarks.md               what was measured, and what is not reached
END

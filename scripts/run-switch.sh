#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What ./run switch shows once the programs are built: a memory node, a switch before it whose
# tables hold the top of a map's tree, the controller that fills them, and a client whose gets are
# one READ that carries the key, beside clients that ask the node or walk the tree. Leaves node,
# switch and controller running, with commands to try.
#
# ESPALIER_RUN_KEYS  pairs in the map; default 1000000
# ESPALIER_RUN_OPS   gets of each way in each of five rounds; default 5000
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/common.sh
source scripts/run-node.sh

keys=${ESPALIER_RUN_KEYS:-1000000}
ops=${ESPALIER_RUN_OPS:-5000}
espalier=build/release/bin/espalier
bench=build/release/bin/espalier-bench
packets=$run_folder/packets.sock
clients=$run_folder/clients.sock
control=$run_folder/switch.sock

for number in "ESPALIER_RUN_KEYS=$keys" "ESPALIER_RUN_OPS=$ops"; do
  if ! [[ "${number#*=}" =~ ^[1-9][0-9]{0,8}$ ]] || [[ "${number#*=}" -lt 100 ]]; then
    echo "$number is no number from 100 to 999999999" >&2
    exit 2
  fi
done

# Whether a process is this run's switch or controller: a number in a file may be anybody's by now.
is_beside() {
  local words
  [[ "$2" =~ ^[1-9][0-9]*$ && -r /proc/$2/cmdline ]] || return 1
  [[ "$(readlink "/proc/$2/cwd")" == "$(pwd -P)" ]] || return 1
  words=$(tr '\0' ' ' <"/proc/$2/cmdline")
  [[ "$words" == *" switch $1 "* ]]
}

# Stops `espalier switch $1` of an earlier run, if it still runs.
stop_beside() {
  local file=$run_folder/$1.pid pid tries
  [[ -f "$file" ]] || return 0
  pid=$(<"$file")
  for ((tries = 0; tries < 100; ++tries)); do
    is_beside "$1" "$pid" || break
    kill "$pid" 2>/dev/null || true
    sleep 0.1
  done
  rm -f "$file"
}

# Starts `espalier switch $1` in the background, and waits until it says something.
start_beside() {
  local log=$run_folder/$1.log tries
  nohup "$espalier" switch "$@" </dev/null >"$log" 2>&1 &
  echo $! >"$run_folder/$1.pid"
  disown $!
  for ((tries = 0; tries < 200; ++tries)); do
    [[ ! -s "$log" ]] || break
    sleep 0.1
  done
  cat "$log"
  is_beside "$1" "$(<"$run_folder/$1.pid")" || {
    echo "espalier switch $1 did not start; its log is $log" >&2
    return 1
  }
}

stop_all() {
  stop_beside controller
  stop_beside run
  stop_run_node
}

pairs() {
  awk -v n="$keys" 'BEGIN { for (i = 1; i <= n; ++i) printf "user%012d\tpair%012d\n", i, i }'
}

step "a memory node that sends packets, and in it $keys pairs, in nodes that fit a packet"
stop_all
start_run_node --node-fabric "roce+memif:$packets" --node-one-sided on
trap stop_all EXIT
"$espalier" map create pairs --node-bytes 4096 --at "$run_address"
pairs | "$espalier" load --at "$run_address" --map pairs --format tsv -

step "a switch before it, and the controller that has its tables follow the map"
start_beside run --clients "$clients" --node "$packets" --control "$control"
start_beside controller --at "roce+memif:$packets" --map pairs --control "$control"

step "one get through the switch"
printf '\n$ %s\n' "espalier get user000000000042 --map pairs --at roce+memif:$clients --in-network"
"$espalier" get user000000000042 --map pairs --at "roce+memif:$clients" --in-network

step "gets of skewed keys, all through the same switch: rpc asks the node, one-sided walks the tree"
"$bench" switch --node-address "roce+memif:$clients" --map pairs --keys "$keys" --ops "$ops"

step "what the switch has counted, and what the node has seen of it: misses, and bytes held"
"$espalier" switch status --control "$control" --at "$run_address"

trap - EXIT
cat <<END

Running, each in the background; the next ./run switch replaces them:
  node        process $(<"$run_pid_file"), at $run_address and roce+memif:$packets
  switch      process $(<"$run_folder/run.pid"), clients come to roce+memif:$clients
  controller  process $(<"$run_folder/controller.pid"); logs lie in $run_folder
  to stop     kill \$(cat $run_folder/*.pid)

Try it:
  export ESPALIER_AT=roce+memif:$clients PATH="\$PWD/build/release/bin:\$PATH"
  espalier get user000000000099 --map pairs --in-network
  espalier scan user000000000099 --map pairs --limit 3 --in-network
  espalier put --map pairs user000000000099 new
  espalier get user000000000099 --map pairs --in-network
  espalier switch status --control $control --at $run_address
  espalier switch resources --control $control

Where to go from here:
  docs/switches.md                 the page for users: roles, counters, trust, several switches
  docs/design/index_in_network.md  how it works, and what makes wrong tables harmless
  docs/command.md                  switch run, controller, install, status, resources, entries
  espalier-bench switch --help     the same with nodes, values and tables of other sizes
END

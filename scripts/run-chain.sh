#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What ./run chain shows once the command is built: etcd and a chain of three nodes on this machine,
# and a client that counts, one put after the other. The head is killed, added again and comes back
# behind the others; then the next head is killed. Shows the client's longest pause each time, and
# that the count is what was acknowledged last. Ends all of it.
#
# ESPALIER_RUN_FENCE_MS  T of the chain: who is silent for so long is left out; default 1000
# ESPALIER_RUN_PUTS      that the client does at least between two events; default 200
# ESPALIER_RUN_PORT      of etcd, which takes the one above, too; default 23790
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/common.sh

fence_ms=${ESPALIER_RUN_FENCE_MS:-1000}
puts=${ESPALIER_RUN_PUTS:-200}
port=${ESPALIER_RUN_PORT:-23790}
espalier=build/release/bin/espalier
folder=build/run/chain
counted=$folder/counted
nodes=(a b c)
address=chain://unix:$folder/a.sock,unix:$folder/b.sock,unix:$folder/c.sock
declare -A process=()

for number in "ESPALIER_RUN_FENCE_MS=$fence_ms" "ESPALIER_RUN_PUTS=$puts" \
  "ESPALIER_RUN_PORT=$port"; do
  if ! [[ "${number#*=}" =~ ^[1-9][0-9]{0,5}$ ]]; then
    echo "$number is no number from 1 to 999999" >&2
    exit 2
  fi
done

# Ends what this script has started, by the numbers that it was told.
end_all() {
  local name
  for name in "${!process[@]}"; do
    kill -9 "${process[$name]}" 2>/dev/null || true
    wait "${process[$name]}" 2>/dev/null || true
  done
}

# Waits up to a minute until a command succeeds.
await() {
  local what=$1 tries
  shift
  for ((tries = 0; tries < 600; ++tries)); do
    if "$@" >/dev/null 2>&1; then
      return 0
    fi
    sleep 0.1
  done
  echo "$what: not within a minute; logs are in $folder" >&2
  return 1
}

try() {
  printf '\n$ %s\n' "$*"
  "$@"
}

start_etcd() {
  etcd --data-dir "$folder/etcd" --listen-client-urls "http://127.0.0.1:$port" \
    --advertise-client-urls "http://127.0.0.1:$port" \
    --listen-peer-urls "http://127.0.0.1:$((port + 1))" \
    --initial-advertise-peer-urls "http://127.0.0.1:$((port + 1))" \
    --initial-cluster "default=http://127.0.0.1:$((port + 1))" >"$folder/etcd.log" 2>&1 &
  process[etcd]=$!
}

etcd_answers() {
  (exec 3<>"/dev/tcp/127.0.0.1/$port") && kill -0 "${process[etcd]}"
}

start_node() {
  "$espalier" serve --chain "$1" --chain-members "$members" --data "$folder/$1" \
    --node-socket "$folder/$1.sock" --memory-limit 256MiB >>"$folder/$1.log" 2>&1 &
  process[$1]=$!
}

# Puts 1, 2, 3, ... and writes down when each was acknowledged. What has failed is put again.
count_on() {
  local i
  for ((i = 1; ; ++i)); do
    until "$espalier" put count "$i" --at "$address" >/dev/null 2>>"$folder/client.log"; do
      sleep 0.01
    done
    echo "${EPOCHREALTIME/[.,]/} $i" >>"$counted"
  done
}

last_count() {
  tail -n 1 "$counted" 2>/dev/null | cut -d ' ' -f 2
}

has_counted_to() {
  [[ "$(last_count)" -ge "$1" ]]
}

# Waits until the client has done some more.
count_some() {
  await "the client counts on" has_counted_to $(($(last_count) + puts))
}

# Between two of these lines of what was counted.
longest_pause_ms() {
  awk -v from="$1" 'NR > from { if (last && $1 - last > most) most = $1 - last; last = $1 }
    END { printf "%d\n", most / 1000 }' "$counted"
}

has_members() {
  local found
  found=$("$espalier" chain status --members "$members" |
    grep -cE '^  role (head|middle|tail)$') || true
  [[ "$found" == "$1" ]]
}

# Kills a node, and says how long the client waited.
kill_node() {
  local before
  before=$(last_count)
  kill -9 "${process[$1]}"
  wait "${process[$1]}" 2>/dev/null || true
  unset "process[$1]"
  count_some
  echo "the client's longest pause: $(longest_pause_ms "$before") ms"
}

rm -rf "$folder"
mkdir -p "$folder"
trap end_all EXIT
members=$folder/members
if command -v etcd >/dev/null; then
  step "etcd, which keeps the chain, and three nodes"
  start_etcd
  await "etcd answers" etcd_answers
  members=etcd://127.0.0.1:$port/espalier-run
  address=chain://$members  # etcd names the nodes, and the client needs to know none
else
  step "three nodes, whose chain a file keeps: etcd is not there (apt-get install etcd-server)"
fi
# An etcd that has just begun has no leader yet, and answers nothing until then.
await "the chain is made" "$espalier" chain create --members "$members" --fence-ms "$fence_ms" \
  "a=shm:$folder/chain.a" "b=shm:$folder/chain.b" "c=shm:$folder/chain.c" \
  --clients "a=unix:$folder/a.sock" --clients "b=unix:$folder/b.sock" \
  --clients "c=unix:$folder/c.sock"
for node in "${nodes[@]}"; do
  start_node "$node"
done
await "the chain serves" "$espalier" chain status --members "$members" --serves
await "a client is served" "$espalier" put count 0 --at "$address"
echo "clients find the chain by $address"
echo "0 0" >"$counted"
count_on &
process[client]=$!
count_some
echo "T = $fence_ms ms; without a failure the longest pause is $(longest_pause_ms 1) ms"

step "the head is killed while the client counts"
kill_node a
try "$espalier" chain status --members "$members"

step "it is added again, and comes back behind the others"
before=$(last_count)
try "$espalier" chain add --members "$members" "a=shm:$folder/chain.a" \
  --clients "a=unix:$folder/a.sock"
start_node a
await "it is a member again" has_members 3
count_some
echo "the client's longest pause: $(longest_pause_ms "$before") ms"
try "$espalier" chain status --members "$members"

step "the next head is killed, and then the one behind it: the one that came back has all"
kill_node b
kill_node c

step "the count is what was acknowledged last"
kill "${process[client]}"
wait "${process[client]}" 2>/dev/null || true
unset "process[client]"
acknowledged=$(last_count)
found=$("$espalier" get count --at "$address")
echo "acknowledged $acknowledged, found $found"
# One more may have been done without an answer.
[[ "$found" == "$acknowledged" || "$found" == $((acknowledged + 1)) ]]
echo "the client's longest pause of all: $(longest_pause_ms 1) ms"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The slow suite: everything that runs in a simulated world, with many seeds. It says how far it is,
# and at the end how often it has seen what seldom happens; each of it must have (docs/testing.md).
#
#   scripts/slow-tests.sh [SEEDS]    default 10000; at least 100, else some of it is not seen
#
# ESPALIER_SEED  the first seed; the one that was used is printed
# ESPALIER_JOBS  jobs at a time for the build, default one for each core
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
source scripts/common.sh

seeds=${1:-10000}
if ! [[ "$seeds" =~ ^[1-9][0-9]{2,}$ ]]; then
  echo "slow-tests.sh: '$seeds' is no number of seeds, of 100 or more" >&2
  exit 2
fi

step "packages"
scripts/install-packages.sh --tests

step "build"
configure release
build_preset release \
  --target fabric_test client_test system_test hostile_test regions_test

# Its lines with its name before them, for several run at a time.
run_case() {
  local program=$1 name=$2
  env ESPALIER_SEEDS="$seeds" "$program" --gtest_filter="$name" 2>&1 |
    sed -u -n "/^Running main\|^\[=\|^\[-\|^Note: \|^ *$/d; s|^|${name#Ways/}: |p"
}
export -f run_case
export seeds

# The cases of a suite, or those that begin so; a filter that matches nothing would pass.
cases_of() {
  local program=build/release/bin/$1 suite=$2 begin=${3:-}
  "$program" --gtest_filter="$suite.*" --gtest_list_tests |
    awk -v program="$program" -v suite="$suite" -v begin="$begin" \
      '$1 == suite "." { in_suite = 1; next }
       in_suite && index($1, begin) == 1 { print program, suite "." $1; found = 1 }
       END { exit !found }'
}

# Those that take longest first, so that none is left alone at the end.
cases=$(
  cases_of system_test OneSidedSim Tables
  cases_of client_test Ways/HostileSeeds
  cases_of client_test Ways/HostileNodeSeeds
  cases_of client_test Ways/LinkSeeds
  cases_of fabric_test RoceSeeds
  cases_of fabric_test SimRandom
  cases_of regions_test PeerSim
  cases_of hostile_test InNetworkSim
)
step "$(wc -l <<<"$cases") worlds, $seeds seeds of each"
xargs -P "$(jobs)" -L 1 bash -c 'set -euo pipefail; run_case "$@"' run_case <<<"$cases"

step "all passed, $seeds seeds"

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
cmake --build --preset release --target fabric_test client_test -j "$(jobs)"

for suite in fabric_test:RoceSeeds fabric_test:SimRandom client_test:Ways/LinkSeeds \
  client_test:Ways/HostileSeeds client_test:Ways/HostileNodeSeeds; do
  program=build/release/bin/${suite%%:*}
  suite=${suite#*:}
  step "$suite: $seeds seeds"
  # A filter that matches nothing would pass.
  "$program" --gtest_filter="$suite.*" --gtest_list_tests | grep -q "^$suite\."
  ESPALIER_SEEDS=$seeds "$program" --gtest_filter="$suite.*"
done

step "all passed, $seeds seeds"

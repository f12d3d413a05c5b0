#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A rolling load on one node: clients come, work, break the rules, go and are killed, and at the end
# the node must hold what it held when many had come (docs/testing.md). First all come by its
# socket, then over fabrics too.
#
#   scripts/load-test.sh [SECONDS]    of each, default 600
#
# ESPALIER_SEED  seed of what the clients do; the one that was used is printed
# ESPALIER_JOBS  jobs at a time for the build, default one for each core
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/common.sh

seconds=${1:-600}
if ! [[ "$seconds" =~ ^[1-9][0-9]*$ ]]; then
  echo "load-test.sh: '$seconds' is no number of seconds" >&2
  exit 2
fi

step "packages"
scripts/install-packages.sh --tests

step "build"
configure release
build_preset release --target system_test

step "two loads of $seconds seconds"
ESPALIER_LOAD_SECONDS=$seconds build/release/bin/system_test \
  --gtest_filter='NodeLoadConcurrency.MemoryIsFlat*'

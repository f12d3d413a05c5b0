#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Run by ctest: runs a test program and writes down the processor time that it took, of which
# scripts/check-budgets.sh makes the sums.
#
#   scripts/run-suite.sh <folder> <name of the test> <program> [argument]...
set -u
record=$1/seconds/${2//\//_}
shift 2
mkdir -p "${record%/*}"

"$@"
status=$?
times >"$record"
exit $status

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Run by ctest: runs a test program and writes down the processor time that it took, of which
# scripts/check-budgets.sh makes the sums. A run of no test at all fails: its filter names none.
#
#   scripts/run-suite.sh <folder> <name of the test> <program> [argument]...
set -u
record=$1/seconds/${2//\//_}
result=$1/results/${2//\//_}.xml
shift 2
mkdir -p "${record%/*}" "${result%/*}"

rm -f "$result"
"$@" "--gtest_output=xml:$result"
status=$?
times >"$record"
if [[ $status -eq 0 ]] && ! grep -q '<testsuites tests="[1-9]' "$result"; then
  echo "run-suite.sh: no test is named so: $*" >&2
  status=1
fi
exit $status

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Holds tests/budgets.txt: the processor seconds that each test program may take in ./test.
#
#   scripts/check-budgets.sh                    that the budgets add up to no more than the total
#   scripts/check-budgets.sh <preset> <folder>  that the tests of a preset kept them; the folder is
#                                               that of the records of scripts/run-suite.sh
#
# ESPALIER_BUDGETS  another file of budgets
#
# A shared machine may need more time for the same work, and a program of a few seconds many times
# as much where threads that wait for each other are kept apart. So a program is measured against
# the run that it is part of: how slow the machine is, between 1 and 2, is what all programs took
# over what they may take. A program that took twice its budget times that, and ten seconds, is
# named, as are all together at twice what they may take, and a minute; at twice as much as that
# the run fails: no machine is as slow, a test is. The budgets themselves are held to the letter:
# who needs more time takes it from another program, or leaves cases to ./test all
# (tests/quick.txt).
set -euo pipefail
cd "$(dirname "$0")/.."
budgets=${ESPALIER_BUDGETS:-tests/budgets.txt}

# Columns of a preset, counted from the line that names them.
check_sums() {
  awk '
    /^#/ || NF == 0 { next }
    !columns { columns = NF; for (i = 2; i <= NF; ++i) name[i] = $i; next }
    NF != columns { printf "line %d has %d columns, not %d\n", FNR, NF, columns; bad = 1; next }
    {
      for (i = 2; i <= NF; ++i) {
        if ($i == "-" && $1 != "total") continue
        if ($i !~ /^[0-9]+$/) { printf "%s: %s is no number of seconds\n", $1, $i; bad = 1 }
        if ($1 == "total") total[i] = $i
        else sum[i] += $i
      }
    }
    END {
      for (i = 2; i <= columns; ++i) {
        if (!(i in total)) { print "no line says the total"; exit 1 }
        if (sum[i] > total[i]) {
          printf "%s: the budgets are %d seconds together, and may be %d\n", name[i], sum[i],
            total[i]
          bad = 1
        }
      }
      exit bad
    }' "$budgets" >&2
}

# Adds up the seconds of each program: the records say minutes and seconds, of the shell itself in
# the first line, of what it ran in the second.
check_preset() {
  local preset=$1 folder=$2
  find "$folder/seconds" -type f -print 2>/dev/null | sort | xargs -r awk '
      FNR == 2 {
        program = FILENAME
        sub(/.*\//, "", program)
        sub(/\..*/, "", program)
        for (i = 1; i <= 2; ++i) {
          split($i, part, /[ms]/)
          spent[program] += part[1] * 60 + part[2]
        }
      }
      END { for (program in spent) print program, spent[program] }' |
    awk -v preset="$preset" '
      FNR == NR && (/^#/ || NF == 0) { next }
      FNR == NR && !column { for (i = 2; i <= NF; ++i) if ($i == preset) column = i; next }
      FNR == NR { budget[$1] = $column; next }
      !column { exit }
      { spent[$1] = $2; order[++programs] = $1; all += $2; allowed += budget[$1] }
      END {
        slow = allowed ? all / allowed : 1
        slow = slow < 1 ? 1 : slow > 2 ? 2 : slow
        for (i = 1; i <= programs; ++i) {
          program = order[i]
          printf "%-24s %7.1f s of processor time, budget %s s\n", program, spent[program],
            budget[program]
          unknown = !(program in budget) || budget[program] == "-"
          limit = 2 * slow * budget[program] + 10
          if (unknown || spent[program] > limit) over = over " " program
          if (unknown || spent[program] > 2 * limit) failed = 1
        }
        if (over != "") {
          printf "more than twice the budget and ten seconds on a machine %.1f times as slow, " \
            "tests/budgets.txt, preset %s:%s\n", slow, preset, over
        }
        limit = 2 * allowed + 60
        if (all > limit) {
          printf "all programs took %.0f s, and may take %d, tests/budgets.txt, preset %s\n", all,
            allowed, preset
        }
        exit failed || all > 2 * limit
      }' "$budgets" - >&2
}

if [[ $# -eq 0 ]]; then
  check_sums
elif [[ $# -eq 2 ]]; then
  check_preset "$@"
else
  echo "usage: scripts/check-budgets.sh [<preset> <folder>]" >&2
  exit 2
fi

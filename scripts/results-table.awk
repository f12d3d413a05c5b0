# SPDX-License-Identifier: Apache-2.0
# Makes a table of the JSON lines of `espalier bench ycsb --target embedded,absl --json`: one row for
# each total, with latencies and memory of the runs before it.

# The number after "name": in the current line, or in the object `inside` of it; "-" if there is none.
function number(name, inside,    text, at) {
  text = $0
  if (inside != "") {
    at = index(text, "\"" inside "\":{")
    if (at == 0) return "-"
    text = substr(text, at)
    text = substr(text, 1, index(text, "}"))
  }
  if (!match(text, "\"" name "\":[-0-9.e+]+")) return "-"
  text = substr(text, RSTART, RLENGTH)
  sub(/^[^:]*:/, "", text)
  return text
}

function word(name,    text) {
  if (!match($0, "\"" name "\":\"[^\"]*\"")) return "-"
  text = substr($0, RSTART, RLENGTH)
  sub(/^[^:]*:"/, "", text)
  sub(/"$/, "", text)
  return text
}

function millions(rate) { return rate == "-" ? "-" : sprintf("%.2f", rate / 1e6) }

BEGIN {
  row = "%-8s %-7s %10s %10s %8s %9s %9s %9s %9s %8s\n"
  printf row, "workload", "keys", "espalier", "absl", "times", "p50 ns", "p99 ns", "B/item",
      "absl", "answers"
  printf row, "", "", "M ops/s", "M ops/s", "absl", "espalier", "espalier", "espalier", "B/item", "agree"
}

/"total":true/ {
  agree = /"result_hashes_equal":true/ && /"end_states_equal":true/ ? "yes" : "NO"
  printf row, word("workload"), keys, millions(number("embedded", "median_ops_per_s")),
      millions(number("absl", "median_ops_per_s")), number("embedded", "ratio_to_absl"),
      p50, p99, bytes["embedded"], bytes["absl"], agree
  if (agree == "NO") failed = 1
  next
}

/"bench":"ycsb"/ {
  target = word("target")
  keys = word("key_set")
  bytes[target] = number("bytes_per_item")
  if (target == "embedded") {
    p50 = number("ns_p50")
    p99 = number("ns_p99")
  }
}

END { exit failed }

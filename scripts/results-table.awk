# SPDX-License-Identifier: Apache-2.0
# Makes a table of the JSON lines of `espalier-bench ycsb --target embedded,node,absl --json`: a row
# for each total, with latencies and memory of the runs before it. What was not measured is "-".

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

function times(rate, base) {
  return rate == "-" || base == "-" || base == 0 ? "-" : sprintf("%.2f", rate / base)
}

function known(value) { return value == "" ? "-" : value }

BEGIN {
  row = "%-8s %-7s %9s %9s %9s %9s %9s %9s %9s %9s %9s %7s\n"
  printf row, "workload", "keys", "embedded", "node", "absl", "embedded", "node", "node /", "p50 ns",
      "p50 ns", "B/item", "answers"
  printf row, "", "", "M ops/s", "M ops/s", "M ops/s", "x absl", "x absl", "embedded", "embedded",
      "node", "embedded", "agree"
}

/"total":true/ {
  agree = /"result_hashes_equal":true/ && /"end_states_equal":true/ ? "yes" : "NO"
  embedded = number("embedded", "median_ops_per_s")
  node = number("node", "median_ops_per_s")
  absl = number("absl", "median_ops_per_s")
  printf row, word("workload"), keys, millions(embedded), millions(node), millions(absl),
      times(embedded, absl), times(node, absl), times(node, embedded), known(p50["embedded"]),
      known(p50["node"]), known(bytes["embedded"]), agree
  if (agree == "NO") failed = 1
  split("", p50)
  split("", bytes)
  next
}

/"bench":"ycsb"/ {
  target = word("target")
  keys = word("key_set")
  bytes[target] = number("bytes_per_item")
  p50[target] = number("ns_p50")
}

END { exit failed }

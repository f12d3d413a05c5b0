// SPDX-License-Identifier: Apache-2.0
#include "dataplane/retarget.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "dataplane/index_lookup.hpp"

namespace espalier::dataplane {
namespace {

constexpr std::uint64_t kLastNumber = std::numeric_limits<std::uint64_t>::max();

/// Numbers from one to another, both of them with it.
struct Numbers {
  std::uint64_t first = kLastNumber;
  std::uint64_t last = 0;
  [[nodiscard]] bool empty() const { return first > last; }
  void add(const Numbers& more) {
    first = std::min(first, more.first);
    last = std::max(last, more.last);
  }
};

class Retargeting {
 public:
  Retargeting(IndexTables& tables, const TreeImage& tree) : tables_(tables), tree_(tree) {}

  void run() {
    std::vector<Numbers> of_ranges(tables_.ways.size());
    const std::vector<RangeRun> runs = range_runs(tables_.root);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const std::uint64_t last = i + 1 < runs.size() ? runs[i + 1].low - 1 : kLastNumber;
      of_ranges[runs[i].result].add({runs[i].low, last});
    }
    for (std::size_t i = 0; i < tables_.ways.size(); ++i) lead(tables_.ways[i], 0, of_ranges[i]);
  }

 private:
  void lead(Way& way, std::size_t set, const Numbers& numbers) {
    if (numbers.empty()) return;
    way.address = tree_.address(lowest_of(numbers));
    if (way.next == kNoNode) return;
    SetNode& node = tables_.sets[set][way.next];
    for (std::uint32_t i = 0; i < node.way_count; ++i) {
      Numbers part = numbers;
      if (i != 0) part.first = std::max(part.first, node.pivots[i - 1]);
      if (i + 1 != node.way_count) {
        if (node.pivots[i] == 0) continue;
        part.last = std::min(part.last, node.pivots[i] - 1);
      }
      lead(node.ways[i], set + 1, part);
    }
    std::fill(node.ways.begin() + node.way_count, node.ways.end(), node.ways[node.way_count - 1]);
  }
  [[nodiscard]] NodeNumber lowest_of(const Numbers& numbers) const {
    NodeNumber node = tree_.root();
    while (!tree_.is_leaf(node)) {
      const auto separators = tree_.separators(node);
      const auto above = std::ranges::upper_bound(separators, numbers.first);
      if (above != separators.end() && *above <= numbers.last) break;
      const NodeNumber child = tree_.child(node, numbers.first);
      if (child == kHere) break;
      node = child;
    }
    return node;
  }

  IndexTables& tables_;
  const TreeImage& tree_;
};

}  // namespace

IndexTables retargeted(IndexTables tables, const TreeImage& tree) {
  Retargeting(tables, tree).run();
  return tables;
}

}  // namespace espalier::dataplane

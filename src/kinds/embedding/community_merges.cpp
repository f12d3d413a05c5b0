// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/community_merges.hpp"

#include <algorithm>

#include "espalier/embedding_types.hpp"

namespace espalier::embedding {
namespace {

class CommunityMerger {
 public:
  CommunityMerger(std::uint32_t items, std::vector<ListPart>& parts, std::uint32_t group_rows_max)
      : items_(items), parts_(parts), group_rows_max_(group_rows_max), benefits_(items * items) {
    rows_.fill(1);
    for (const ListPart& part : parts_) {
      part.items.each([&](std::uint32_t a) { add_benefits(a, part); });
    }
    for (std::uint32_t a = 0; a < items_; ++a) choose(a);
  }

  std::vector<Merge> run() {
    std::vector<Merge> merges;
    for (;;) {
      std::uint32_t a = 0;
      for (std::uint32_t i = 1; i < items_; ++i) {
        if (best_gain_[i] > best_gain_[a]) a = i;
      }
      if (!(best_gain_[a] > 0)) return merges;
      const std::uint32_t first = std::min<std::uint32_t>(a, best_[a]);
      const std::uint32_t second = std::max<std::uint32_t>(a, best_[a]);
      merges.push_back({best_gain_[a], sums_of(first, second), static_cast<std::uint8_t>(first),
                        static_cast<std::uint8_t>(second)});
      merge(first, second);
    }
  }

 private:
  [[nodiscard]] std::uint64_t& benefit(std::uint32_t a, std::uint32_t b) {
    return benefits_[a * items_ + b];
  }
  [[nodiscard]] std::uint32_t sums_of(std::uint32_t a, std::uint32_t b) const {
    return group_sums(rows_[a] + rows_[b]) - group_sums(rows_[a]) - group_sums(rows_[b]);
  }
  [[nodiscard]] double gain(std::uint32_t a, std::uint32_t b) {
    if (rows_[a] + rows_[b] > group_rows_max_) return 0;
    return static_cast<double>(benefit(a, b)) / sums_of(a, b);
  }
  void add_benefits(std::uint32_t a, const ListPart& part) {
    part.items.each([&](std::uint32_t b) {
      if (a != b) benefit(a, b) += part.weight;
    });
  }

  // Finds the best partner of a group.
  void choose(std::uint32_t a) {
    best_gain_[a] = 0;
    if (rows_[a] == 0) return;
    for (std::uint32_t b = 0; b < items_; ++b) {
      if (b == a || rows_[b] == 0) continue;
      const double by_it = gain(a, b);
      if (by_it > best_gain_[a]) {
        best_gain_[a] = by_it;
        best_[a] = static_cast<std::uint8_t>(b);
      }
    }
  }

  void merge(std::uint32_t first, std::uint32_t second) {
    rows_[first] += rows_[second];
    rows_[second] = 0;
    for (std::uint32_t b = 0; b < items_; ++b) benefit(first, b) = 0;
    for (ListPart& part : parts_) {
      if (part.items.has(second)) {
        part.items.remove(second);
        part.items.add(first);
      }
      if (part.items.has(first)) add_benefits(first, part);
    }
    for (std::uint32_t b = 0; b < items_; ++b) {
      benefit(b, first) = benefit(first, b);
      benefit(b, second) = 0;
    }
    choose(first);
    best_gain_[second] = 0;
    for (std::uint32_t b = 0; b < items_; ++b) {
      if (rows_[b] == 0 || b == first) continue;
      if (best_[b] == first || best_[b] == second) {
        choose(b);
      } else if (const double by_it = gain(b, first); by_it > best_gain_[b]) {
        best_gain_[b] = by_it;
        best_[b] = static_cast<std::uint8_t>(first);
      }
    }
  }

  const std::uint32_t items_;
  std::vector<ListPart>& parts_;
  const std::uint32_t group_rows_max_;
  std::vector<std::uint64_t> benefits_;
  std::array<std::uint32_t, kCommunityItemsMax> rows_;  // of each group; 0: it joined another
  std::array<double, kCommunityItemsMax> best_gain_{};
  std::array<std::uint8_t, kCommunityItemsMax> best_{};
};

}  // namespace

std::vector<Merge> merges_of(std::uint32_t items, std::vector<ListPart>& parts,
                             std::uint32_t group_rows_max) {
  // Combines equal parts of lists, and adds their weights.
  std::ranges::sort(parts, [](const ListPart& a, const ListPart& b) { return a.items < b.items; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (kept != 0 && parts[kept - 1].items == parts[i].items) {
      parts[kept - 1].weight += parts[i].weight;
    } else {
      parts[kept++] = parts[i];
    }
  }
  parts.resize(kept);
  if (parts.empty()) return {};
  return CommunityMerger(items, parts, group_rows_max).run();
}

}  // namespace espalier::embedding

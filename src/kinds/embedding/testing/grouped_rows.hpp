// SPDX-License-Identifier: Apache-2.0
// For tests: groups of rows, what bags come to with them within the stated error, and checks that
// tests run on good tables and on broken ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "kinds/embedding/gather_kits.hpp"
#include "kinds/embedding/grouping.hpp"
#include "kinds/embedding/testing/embedding_store.hpp"
#include "kinds/embedding/testing/whole_rows.hpp"

namespace espalier::embedding {

/// Groups with their memory.
struct OwnGroups {
  std::vector<std::uint8_t> sizes;
  std::vector<std::uint32_t> rows;

  void add(std::vector<std::uint32_t> group) {
    sizes.push_back(static_cast<std::uint8_t>(group.size()));
    rows.insert(rows.end(), group.begin(), group.end());
  }
  [[nodiscard]] RowGroups get() const { return {sizes, rows}; }
};

/// Groups of 2 to 8 of the first `grouped` rows, shuffled.
inline OwnGroups random_groups(std::uint32_t grouped, base::Random& random) {
  std::vector<std::uint32_t> rows(grouped);
  std::iota(rows.begin(), rows.end(), 0u);
  for (std::uint32_t i = grouped; i > 1; --i) std::swap(rows[i - 1], rows[random.below(i)]);
  OwnGroups groups;
  for (std::uint32_t at = 0; grouped - at >= 2;) {
    const std::uint32_t size =
        std::min(grouped - at, static_cast<std::uint32_t>(2 + random.below(7)));
    groups.sizes.push_back(static_cast<std::uint8_t>(size));
    at += size;
  }
  groups.rows.assign(rows.begin(),
                     rows.begin() + std::accumulate(groups.sizes.begin(), groups.sizes.end(), 0));
  return groups;
}

/// Bags that often have several rows of a group, and ids twice.
inline OwnWork grouped_work(Reduction reduction, const OwnGroups& groups, std::uint32_t dimension,
                            std::uint32_t rows, std::size_t bags, base::Random& random) {
  OwnWork work = random_work(reduction, false, dimension, rows, bags, 0, random);
  std::vector<std::size_t> begins;
  std::size_t at = 0;
  for (const std::uint8_t size : groups.sizes) begins.push_back(std::exchange(at, at + size));
  for (std::size_t bag = 0; bag < bags; ++bag) {
    work.offsets[bag] = static_cast<std::uint32_t>(work.ids.size());
    for (std::uint64_t draws = random.below(30); draws != 0; --draws) {
      if (begins.empty() || random.below(3) == 0) {
        work.ids.push_back(static_cast<std::uint32_t>(random.below(rows)));
        continue;
      }
      const std::size_t group = random.below(begins.size());
      for (std::uint32_t i = 0; i < groups.sizes[group]; ++i) {
        if (random.below(3) != 0) work.ids.push_back(groups.rows[begins[group] + i]);
      }
    }
    if (random.below(4) == 0) {
      const auto begin = work.ids.begin() + work.offsets[bag];
      const std::vector<std::uint32_t> again(begin, work.ids.end());
      work.ids.insert(work.ids.end(), again.begin(), again.end());
    }
  }
  return work;
}

/// Whether results with sums of groups are those of rows alone within the error that
/// docs/embedding.md states: of a sum of n rows n / 2^23 of the sum of their magnitudes, of a mean
/// that over n; of an inner product (n + dimension) / 2^23 of the sum of the magnitudes of all
/// values, each times that of the vector's value.
inline bool agree_within_error(EmbeddingType type, std::uint32_t dimension,
                               std::span<const std::byte> rows, const OwnWork& work,
                               std::span<const float> found) {
  OwnWork plain = work;
  const std::vector<float> wanted = reference(type, dimension, rows, plain);
  if (found.size() != wanted.size()) return false;
  const std::uint32_t width = result_width(work.reduction, dimension);
  const std::uint32_t row_bytes = row_bytes_of(type, dimension);
  std::vector<float> row(dimension);
  for (std::size_t bag = 0; bag < work.offsets.size(); ++bag) {
    const std::size_t begin = work.offsets[bag];
    const std::size_t end = bag + 1 < work.offsets.size() ? work.offsets[bag + 1] : work.ids.size();
    std::vector<double> magnitude(dimension, 0);
    for (std::size_t i = begin; i < end; ++i) {
      load_row(type, rows.subspan(std::size_t{work.ids[i]} * row_bytes, row_bytes), row);
      for (std::uint32_t c = 0; c < dimension; ++c) magnitude[c] += std::abs(double{row[c]});
    }
    const auto n = static_cast<double>(end - begin);
    if (work.reduction == Reduction::mean && n != 0) {
      for (double& value : magnitude) value /= n;
    }
    if (work.reduction == Reduction::inner_product) {
      double all = 0;
      for (std::uint32_t c = 0; c < dimension; ++c) {
        all += magnitude[c] * std::abs(double{work.vector[c]});
      }
      magnitude.assign(1, all);
    }
    const double steps = work.reduction == Reduction::inner_product ? n + dimension : n;
    for (std::uint32_t c = 0; c < width; ++c) {
      const std::size_t at = bag * width + c;
      if (std::isnan(found[at]) && std::isnan(wanted[at])) continue;
      if (!(std::abs(double{found[at]} - wanted[at]) <= steps * 0x1p-23 * magnitude[c])) {
        return false;
      }
    }
  }
  return true;
}

/// Pieces of a grouping up to where groups of it are computed, and more are to be.
inline void go_to_sums(Grouping& grouping, const EmbeddingTable& table) {
  while (table.all_numbers().grouping_computed == 0) ASSERT_TRUE(grouping.step().value_or(false));
}

/// A table of 64 columns, of which each has the row's number, so that sums are exact.
struct NumberedRows {
  explicit NumberedRows(std::uint32_t rows) : table(store.create({64})) {
    for (std::uint32_t row = 0; row < rows; ++row) {
      EXPECT_TRUE(table->append(row_of(*table, static_cast<float>(row))));
    }
  }
  [[nodiscard]] float sum(std::vector<std::uint32_t> ids) const {
    return reduced(*table, {std::move(ids), {0}, {}, {}, Reduction::sum}, scalar_gather())
        .value()[63];
  }

  EmbeddingStore store;
  std::shared_ptr<EmbeddingTable> table;
};

/// Whether sums of groups are those of their rows, of each subset, and ids that come twice count
/// twice.
inline bool sums_are_of_their_rows() {
  NumberedRows of(40);
  OwnGroups groups;
  groups.add({0, 1});
  groups.add({2, 3});
  groups.add({10, 20, 30});
  groups.add({11, 21, 31});
  groups.add({4, 5, 6, 7, 8, 9, 12, 13});
  EXPECT_TRUE(group_rows(*of.table, groups.get()));
  bool good = of.sum({0, 0, 1}) == 1 && of.sum({3, 3, 2, 2}) == 10;
  std::size_t at = 0;
  for (const std::uint8_t size : groups.sizes) {
    for (std::uint32_t mask = 1; mask < std::uint32_t{1} << size; ++mask) {
      std::vector<std::uint32_t> ids;
      for (std::uint32_t bit = 0; bit < size; ++bit) {
        if ((mask >> bit & 1) != 0) ids.push_back(groups.rows[at + bit]);
      }
      const auto wanted = static_cast<float>(std::accumulate(ids.begin(), ids.end(), 0u));
      good &= of.sum(ids) == wanted;
    }
    at += size;
  }
  return good;
}

/// Whether a sum is that of the new row once it was replaced.
inline bool sums_follow_replacements() {
  NumberedRows of(10);
  OwnGroups groups;
  groups.add({1, 2, 3});
  EXPECT_TRUE(group_rows(*of.table, groups.get()));
  bool good = of.sum({1, 2, 3}) == 6;
  EXPECT_TRUE(of.table->replace(2, row_of(*of.table, 100)));
  good &= of.sum({1, 2, 3}) == 104 && of.sum({2, 3}) == 103 && of.sum({1, 3}) == 4;
  // Rows of groups that are being made, too: of those that are computed, and of those that are not.
  OwnGroups many;
  for (std::uint32_t row = 0; row < 3000; row += 2) many.add({row + 10, row + 11});
  for (std::uint32_t row = 10; row < 3010; ++row) {
    EXPECT_TRUE(of.table->append(row_of(*of.table, 1)));
  }
  Grouping grouping(*of.table, many.get());
  go_to_sums(grouping, *of.table);
  EXPECT_LT(of.table->all_numbers().grouping_computed, 1500u);
  for (const std::uint32_t row : {10u, 3008u}) {
    EXPECT_TRUE(of.table->replace(row, row_of(*of.table, 7)));
  }
  good &= of.sum({1, 2, 3}) == 104 && of.sum({10, 11}) == 8;
  while (grouping.step().value()) {
  }
  good &= of.sum({10, 11}) == 8 && of.sum({3008, 3009}) == 8 && of.sum({1, 2, 3}) == 104;
  return good && audit(*of.table).empty();
}

/// Whether sums follow rows that the thread stores that raises the mark, which computes none of
/// them: no reader uses them until they are computed, whatever else lies on their page.
inline bool sums_follow_durable_replacements() {
  catalog::RecordingSink sink(catalog::RecordingSink::Durable::by_hand);
  NumberedRows of(40);
  EmbeddingTable& table = *of.table;
  const std::vector<std::uint32_t> pair = {0, 1};
  const std::vector<std::uint32_t> eight = {10, 11, 12, 13, 14, 15, 16, 17};
  OwnGroups groups;
  groups.add(pair);
  groups.add(eight);  // more sums than a reader computes at a time
  EXPECT_TRUE(group_rows(table, groups.get()));
  table.record_to(&sink);
  const auto replace = [&](std::uint64_t row, float value) {
    EXPECT_TRUE(table.replace(row, row_of(table, value)));
  };
  replace(1, 100);
  replace(13, 200);
  replace(9, 300);  // of no group
  bool good = of.sum(pair) == 1 && of.sum(eight) == 108 && of.sum({9}) == 9;
  sink.make_durable();
  const auto follow = [&] {
    return of.sum(eight) == 295 && of.sum(pair) == 100 && of.sum({9}) == 300;
  };
  {
    // A reader that cannot compute any, for others change the table.
    const auto held = table.hold_writes();
    std::thread reader([&] { good = follow() && good; });
    reader.join();
  }
  // Each of these computes some.
  for (int i = 0; i < 8; ++i) good = follow() && good;
  // Groups that are made when some of the sums of others are not computed.
  replace(1, 101);
  replace(0, 5);
  sink.make_durable();
  EXPECT_TRUE(group_rows(table, groups.get()));
  good = good && of.sum(pair) == 106;
  replace(13, 201);
  sink.make_durable();
  good = good && of.sum(eight) == 296 && of.sum(pair) == 106 && audit(table).empty();
  good = good && of.sum(eight) == 296 && of.sum(pair) == 106;
  table.record_to(nullptr);
  return good && table.all_numbers().groups == 2;
}

/// Whether a sum is one of whole rows whose group has a row replaced in the middle of a gather.
inline bool sum_replaced_midway_is_whole() {
  NumberedRows of(4);
  OwnGroups groups;
  groups.add({0, 1});
  EXPECT_TRUE(group_rows(*of.table, groups.get()));
  ReplacedMidway::table = of.table.get();
  ReplacedMidway::row = row_of(*of.table, 5);
  GatherKit kit = scalar_gather();
  kit.kernels[0][0] = &ReplacedMidway::gather;
  const auto found = reduced(*of.table, {{0, 1}, {0}, {}, {}, Reduction::sum}, kit);
  return found == std::vector<float>(64, 6);
}

}  // namespace espalier::embedding

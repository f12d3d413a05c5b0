// SPDX-License-Identifier: Apache-2.0
// For tests: embedding tables with the parts of a store that they need, random rows and bags, and
// the reduction written down plainly, in double precision where order would matter.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "catalog/catalog.hpp"
#include "kinds/embedding/audit.hpp"
#include "kinds/embedding/embedding_table.hpp"
#include "kinds/embedding/reducer.hpp"
#include "kinds/embedding/row_codec.hpp"
#include "memory/buffer_pool.hpp"
#include "memory/region.hpp"

namespace espalier::embedding {

inline constexpr EmbeddingType kAllTypes[] = {EmbeddingType::fp32, EmbeddingType::fp16,
                                              EmbeddingType::bf16, EmbeddingType::int8};
inline constexpr Reduction kAllReductions[] = {Reduction::sum, Reduction::mean, Reduction::max,
                                               Reduction::min, Reduction::inner_product};

struct EmbeddingStore {
  explicit EmbeddingStore(std::uint64_t bytes_max = std::uint64_t{64} << 20)
      : region(*memory::Region::reserve({.bytes_max = bytes_max, .huge_pages = false})) {}

  std::shared_ptr<EmbeddingTable> create(const EmbeddingOptions& options,
                                         std::string_view name = "t") {
    return create_embedding_table(catalog, pool, name, shape_of(options)).value();
  }

  memory::Region region;
  memory::BufferPool pool{region};
  catalog::Catalog catalog;  // last, for its tables give memory back to the others
};

/// A row whose values all are this one.
inline std::vector<std::byte> row_of(const EmbeddingTable& table, float value) {
  const std::vector<float> values(table.options().dimension, value);
  std::vector<std::byte> row(table.row_bytes());
  EXPECT_TRUE(store_rows(table.options().type, table.options().dimension, values, row));
  return row;
}

/// Rows that values of -8 to 8 make.
inline std::vector<std::byte> random_rows(const EmbeddingTable& table, std::size_t rows,
                                          base::Random& random) {
  std::vector<float> values(rows * table.options().dimension);
  for (float& value : values) value = static_cast<float>(random.below(1 << 16)) / 4096 - 8;
  std::vector<std::byte> bytes(rows * table.row_bytes());
  EXPECT_TRUE(store_rows(table.options().type, table.options().dimension, values, bytes));
  return bytes;
}

/// Bags and what is asked of them, with their memory.
struct OwnWork {
  std::vector<std::uint32_t> ids;
  std::vector<std::uint32_t> offsets;
  std::vector<float> weights;
  std::vector<float> vector;
  Reduction reduction = Reduction::sum;

  [[nodiscard]] ReductionWork get() const { return {reduction, {ids, offsets, weights}, vector}; }
};

/// Of bags of up to `longest` rows, some of them empty.
inline OwnWork random_work(Reduction reduction, bool weighted, std::uint32_t dimension,
                           std::uint32_t rows, std::size_t bags, std::uint64_t longest,
                           base::Random& random) {
  OwnWork work;
  work.reduction = reduction;
  for (std::size_t bag = 0; bag < bags; ++bag) {
    work.offsets.push_back(static_cast<std::uint32_t>(work.ids.size()));
    for (std::uint64_t left = random.below(longest + 1); left != 0; --left) {
      work.ids.push_back(static_cast<std::uint32_t>(random.below(rows)));
    }
  }
  const auto value = [&random] { return static_cast<float>(random.below(2001)) / 1000 - 1; };
  if (weighted) {
    for (std::size_t i = 0; i < work.ids.size(); ++i) work.weights.push_back(value());
  }
  if (reduction == Reduction::inner_product) {
    for (std::uint32_t c = 0; c < dimension; ++c) work.vector.push_back(value());
  }
  return work;
}

/// The plain reference: one float after the other, in the order of the ids.
inline std::vector<float> reference(EmbeddingType type, std::uint32_t dimension,
                                    std::span<const std::byte> rows, const OwnWork& work) {
  const std::uint32_t row_bytes = row_bytes_of(type, dimension);
  std::vector<float> results;
  std::vector<float> row(dimension);
  for (std::size_t bag = 0; bag < work.offsets.size(); ++bag) {
    const std::size_t begin = work.offsets[bag];
    const std::size_t end = bag + 1 < work.offsets.size() ? work.offsets[bag + 1] : work.ids.size();
    std::vector<float> all(dimension, 0.0F);
    for (std::size_t i = begin; i < end; ++i) {
      load_row(type, rows.subspan(std::size_t{work.ids[i]} * row_bytes, row_bytes), row);
      for (std::uint32_t c = 0; c < dimension; ++c) {
        const float x = row[c];
        if (work.reduction == Reduction::max || work.reduction == Reduction::min) {
          const bool wins = work.reduction == Reduction::max ? x > all[c] : x < all[c];
          if (i == begin || wins || std::isnan(x)) all[c] = x;
        } else {
          all[c] = work.weights.empty() ? all[c] + x : std::fma(work.weights[i], x, all[c]);
        }
      }
    }
    if (work.reduction == Reduction::mean && begin != end) {
      for (float& value : all) value /= static_cast<float>(end - begin);
    }
    if (work.reduction == Reduction::inner_product) {
      double product = 0;
      for (std::uint32_t c = 0; c < dimension; ++c) product += double{all[c]} * work.vector[c];
      all.assign(1, static_cast<float>(product));
    }
    results.insert(results.end(), all.begin(), all.end());
  }
  return results;
}

/// Whether they are the same numbers, any NaN being another's like; sums of products as near as
/// their order allows.
inline bool agree(std::span<const float> a, std::span<const float> b, bool products) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i])) continue;
    if (!products || !(std::abs(a[i] - b[i]) <= 0.05F + 1e-4F * std::abs(b[i]))) return false;
  }
  return true;
}

/// All steps, by these kernels.
inline std::expected<std::vector<float>, WrongId> reduced(const EmbeddingTable& table,
                                                          const OwnWork& work,
                                                          const GatherKit& kit) {
  const ReductionWork asked = work.get();
  EXPECT_EQ(fault_of_work(asked, table.options().dimension), std::nullopt);
  std::vector<float> results(work.offsets.size() *
                             result_width(work.reduction, table.options().dimension));
  Reducer reducer(table, asked, results, kit);
  if (const auto begun = reducer.begin(); !begun) return std::unexpected(begun.error());
  for (bool more = !work.offsets.empty(); more;) {
    const auto stepped = reducer.step();
    if (!stepped) return std::unexpected(stepped.error());
    more = *stepped;
  }
  return results;
}

}  // namespace espalier::embedding

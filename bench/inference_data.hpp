// SPDX-License-Identifier: Apache-2.0
// Data of the measurements of `espalier-bench inference`: rows and bags from one seed, and tables
// made of them.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "bench/huge_memory.hpp"
#include "bench/node_transport.hpp"
#include "espalier/embedding_table.hpp"
#include "node/node.hpp"

namespace espalier::bench {

struct InferenceShape {
  std::uint32_t rows = 0;
  std::uint32_t dimension = 0;
  std::uint64_t seed = 0;
};

/// The values of one row, the same in each call: whole numbers of 256ths from -1 up to 1, so that
/// sums of some thousands are exact in any order. Requires: room for as many as the dimension.
void fill_row(const InferenceShape& shape, std::uint32_t row, std::span<float> values);
/// So many ids of rows, drawn uniformly.
[[nodiscard]] std::vector<std::uint32_t> draw_ids(const InferenceShape& shape, std::uint64_t count);

/// Appends all rows. Errors: throws std::runtime_error.
void load_rows(EmbeddingTable& table, const InferenceShape& shape);

/// A table of this process, or of a node that is started for it, with calls or reads. Errors: as
/// load_rows().
class LoadedTable {
 public:
  LoadedTable(const InferenceShape& shape, EmbeddingType type,
              std::optional<NodeTransport> transport, const RowGroups& groups = {},
              Access access = Access::rpc);

  [[nodiscard]] const EmbeddingTable& table() const { return *table_; }
  [[nodiscard]] Store& store() { return *store_; }

 private:
  std::unique_ptr<node::Node> node_;  // outlives the store
  std::optional<Store> store_;
  std::optional<EmbeddingTable> table_;
};

/// Rows in the layout of MERCI's evaluator: a vector of vectors.
using MerciTable = std::vector<std::vector<float>>;
[[nodiscard]] MerciTable merci_table(const InferenceShape& shape);
/// The sum of some rows, row by row in memory.
void merci_sum(const MerciTable& table, const std::vector<std::uint32_t>& query,
               std::vector<float>& sum);

/// Rows of random lines that the machine brings in a second, of as much memory as the rows take,
/// by the best of some hints and distances of a prefetch; nothing is summed but one word of each
/// line.
struct LineRate {
  double lines_per_s = 0;
  double seconds = 0;
  std::uint64_t lines = 0;
  std::uint64_t checksum = 0;
  int hint = 0;           // as __builtin_prefetch() takes it: 3 all levels, 0 none to stay in
  std::size_t ahead = 0;  // rows
};
[[nodiscard]] LineRate line_rate(const HugeBuffer& memory, std::span<const std::uint32_t> ids,
                                 std::uint32_t row_bytes);

}  // namespace espalier::bench

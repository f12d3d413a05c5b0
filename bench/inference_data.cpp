// SPDX-License-Identifier: Apache-2.0
#include "bench/inference_data.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/atomic_bytes.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "bench/map_session.hpp"
#include "bench/own_node.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr const char* kRowsName = "rows";

/// Memory for a table of these rows and groups, and for the store's other needs.
std::uint64_t memory_for(const InferenceShape& shape, const RowGroups& groups) {
  const std::uint64_t row_bytes = shape.dimension * sizeof(float);
  std::uint64_t rows = shape.rows * row_bytes;
  for (const std::uint8_t size : groups.sizes) rows += group_sums(size) * row_bytes;
  return rows + rows / 8 + 64 * kMiB;
}

/// All rows once, lines of a row `ahead` rows before they are read, with this hint.
template <int kHint>
std::uint64_t read_rows_lines(const HugeBuffer& memory, std::span<const std::uint32_t> ids,
                              std::uint32_t row_bytes, std::size_t ahead) {
  const std::byte* const base = memory.data();
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::size_t later = std::min(i + ahead, ids.size() - 1);
    const std::byte* const next = base + std::size_t{ids[later]} * row_bytes;
    for (std::uint32_t at = 0; at < row_bytes; at += 64) __builtin_prefetch(next + at, 0, kHint);
    const std::byte* const row = base + std::size_t{ids[i]} * row_bytes;
    for (std::uint32_t at = 0; at < row_bytes; at += 64) {
      sum += base::load_plain<std::uint32_t>(row + at);
    }
  }
  return sum;
}

template <int kHint>
void try_hint(const HugeBuffer& memory, std::span<const std::uint32_t> ids, std::uint32_t row_bytes,
              LineRate& best) {
  for (const std::size_t ahead : {16, 32, 64, 128}) {
    const base::Stopwatch watch;
    const std::uint64_t checksum = read_rows_lines<kHint>(memory, ids, row_bytes, ahead);
    const double seconds = static_cast<double>(watch.elapsed_ns()) * 1e-9;
    const std::uint64_t lines = ids.size() * ((row_bytes + 63) / 64);
    const double rate = static_cast<double>(lines) / seconds;
    if (rate > best.lines_per_s) best = {rate, seconds, lines, checksum, kHint, ahead};
  }
}

}  // namespace

void fill_row(const InferenceShape& shape, std::uint32_t row, std::span<float> values) {
  base::Random random(base::mix64(shape.seed + row));
  for (float& value : values) {
    value = static_cast<float>(static_cast<int>(random() >> 55) - 256) * 0x1p-8F;
  }
}

std::vector<std::uint32_t> draw_ids(const InferenceShape& shape, std::uint64_t count) {
  base::Random random(shape.seed);
  std::vector<std::uint32_t> ids(count);
  for (std::uint32_t& id : ids) id = static_cast<std::uint32_t>(random.below(shape.rows));
  return ids;
}

void load_rows(EmbeddingTable& table, const InferenceShape& shape) {
  const std::uint32_t dimension = shape.dimension;
  const auto some = static_cast<std::uint32_t>(table.append_rows_max());
  std::vector<float> values;
  for (std::uint32_t row = 0; row < shape.rows;) {
    const std::uint32_t count = std::min(some, shape.rows - row);
    values.resize(std::size_t{count} * dimension);
    for (std::uint32_t i = 0; i < count; ++i, ++row) {
      fill_row(shape, row, std::span(values).subspan(std::size_t{i} * dimension, dimension));
    }
    const auto appended = table.append(values);
    if (!appended) throw std::runtime_error("cannot append rows: " + message(appended.error()));
  }
}

LoadedTable::LoadedTable(const InferenceShape& shape, EmbeddingType type,
                         std::optional<NodeTransport> transport, const RowGroups& groups,
                         Access access) {
  if (transport) {
    node::Config config = spinning_node_config();
    config.memory.limit = memory_for(shape, groups);
    prepare(config, *transport);
    config.node.one_sided = access == Access::one_sided;
    node_ = start_own_node(config);
    StoreOptions options;
    options.access = access;
    store_.emplace(value_or_throw(Store::connect(address_of(*node_, *transport, 0), options),
                                  "cannot connect"));
  } else {
    StoreOptions options;
    options.memory_bytes_max = memory_for(shape, groups);
    store_.emplace(value_or_throw(Store::open(options), "cannot open a store"));
  }
  table_.emplace(value_or_throw(store_->create_embedding_table(kRowsName, {shape.dimension, type}),
                                "cannot make an embedding table"));
  load_rows(*table_, shape);
  if (groups.sizes.empty()) return;
  const auto grouped = table_->group(groups);
  if (!grouped) throw std::runtime_error("cannot group rows: " + message(grouped.error()));
}

MerciTable merci_table(const InferenceShape& shape) {
  MerciTable table(shape.rows, std::vector<float>(shape.dimension));
  for (std::uint32_t row = 0; row < shape.rows; ++row) fill_row(shape, row, table[row]);
  return table;
}

void merci_sum(const MerciTable& table, const std::vector<std::uint32_t>& query,
               std::vector<float>& sum) {
  std::ranges::fill(sum, 0.0F);
  for (const std::uint32_t id : query) {
    const std::vector<float>& row = table[id];
    for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += row[c];
  }
}

LineRate line_rate(const HugeBuffer& memory, std::span<const std::uint32_t> ids,
                   std::uint32_t row_bytes) {
  LineRate best;
  try_hint<0>(memory, ids, row_bytes, best);
  try_hint<1>(memory, ids, row_bytes, best);
  try_hint<2>(memory, ids, row_bytes, best);
  try_hint<3>(memory, ids, row_bytes, best);
  return best;
}

}  // namespace espalier::bench

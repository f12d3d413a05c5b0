// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "channel/public_call.hpp"
#include "espalier/embedding_table.hpp"
#include "kinds/embedding/client/embedding_tables.hpp"
#include "kinds/embedding/reduction_work.hpp"

namespace espalier {

using client::call;

const std::string& EmbeddingTable::name() const { return impl_->name(); }

const EmbeddingOptions& EmbeddingTable::options() const { return impl_->options; }

std::uint32_t EmbeddingTable::row_bytes() const { return impl_->row_bytes; }

TableResult<std::uint64_t> EmbeddingTable::append(std::span<const float> rows) {
  return call(*impl_, [&] { return impl_->append(rows); });
}

TableResult<void> EmbeddingTable::replace(std::uint64_t row, std::span<const float> values) {
  return call(*impl_, [&] { return impl_->replace(row, values); });
}

TableResult<std::vector<float>> EmbeddingTable::reduce(Reduction reduction,
                                                       const EmbeddingBags& bags,
                                                       std::span<const float> vector) const {
  return call(*impl_, [&]() -> TableResult<std::vector<float>> {
    std::vector<float> results(impl_->floats_of(reduction, bags.offsets.size()));
    const auto done = impl_->reduce({reduction, bags, vector}, results);
    if (!done) return std::unexpected(done.error());
    return results;
  });
}

TableResult<void> EmbeddingTable::reduce_into(std::span<float> results, Reduction reduction,
                                              const EmbeddingBags& bags,
                                              std::span<const float> vector) const {
  return call(*impl_, [&] { return impl_->reduce({reduction, bags, vector}, results); });
}

TableResult<void> EmbeddingTable::reduce_many(std::span<ReduceRequest> requests,
                                              std::uint32_t in_flight) const {
  return call(*impl_, [&] { return impl_->reduce_many(requests, in_flight); });
}

TableResult<std::vector<float>> EmbeddingTable::reduce_tables(Reduction reduction,
                                                              std::span<const TableBags> tables) {
  if (tables.empty()) return std::vector<float>();
  const auto is_copy = [](const TableBags& of) { return of.table.impl_->is_copy(); };
  if (std::ranges::any_of(tables, is_copy)) return std::unexpected(Error{Code::forked, 0, 0});
  return call(*tables.front().table.impl_,
              [&] { return client::EmbeddingTableImpl::reduce_tables(reduction, tables); });
}

TableResult<std::uint32_t> EmbeddingTable::group(const RowGroups& groups) {
  return call(*impl_, [&] { return impl_->group(groups); });
}

TableResult<std::uint32_t> EmbeddingTable::renumber(std::span<std::uint32_t> ids) const {
  return call(*impl_, [&] { return impl_->renumber(ids); });
}

Result<EmbeddingStats> EmbeddingTable::stats() const {
  return call(*impl_, [&] { return impl_->stats(); });
}

Result<std::vector<std::string>> EmbeddingTable::audit() const {
  return call(*impl_, [&] { return impl_->audit(); });
}

}  // namespace espalier

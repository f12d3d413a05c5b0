// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/execute.hpp"

#include <span>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "kinds/embedding/memo.hpp"
#include "kinds/embedding/reduction_work.hpp"
#include "store/store_core.hpp"

namespace espalier::embedding_calls {

using embedding::EmbeddingTable;

namespace {

std::span<const std::byte> bytes_in(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

Result<std::shared_ptr<EmbeddingTable>> obtain(catalog::Catalog& catalog, const Create& asked) {
  tree::StoreCore* const core = catalog.store();
  ESPALIER_ASSERT(core != nullptr);
  return embedding::create_embedding_table(catalog, core->pool, asked.name, asked.shape,
                                           wire::durability_of(asked.durability));
}

Result<std::shared_ptr<EmbeddingTable>> obtain(catalog::Catalog& catalog, const Open& asked) {
  return catalog.open<EmbeddingTable>(asked.name);
}

Result<Numbers> execute(EmbeddingTable& of, const Info& asked) {
  if (of.dropped() || !of.has_name(asked.named)) return fail(Code::not_found, of.id());
  return Numbers{of.all_numbers()};
}

TableResult<Appended> execute(EmbeddingTable& of, const Append& asked) {
  const auto first = of.append(bytes_in(asked.rows), asked.named);
  if (first) return Appended{*first};
  if (first.error().code != Code::invalid_argument) return std::unexpected(first.error());
  return std::unexpected(TableError(
      first.error(), "these are no whole rows of " + std::to_string(of.row_bytes()) + " bytes"));
}

TableResult<Replaced> execute(EmbeddingTable& of, const Replace& asked) {
  const auto done = of.replace(asked.row, bytes_in(asked.bytes), asked.named);
  if (done) return Replaced{};
  if (done.error().code != Code::invalid_argument) return std::unexpected(done.error());
  const std::string words =
      asked.bytes.size() != of.row_bytes()
          ? "a row has " + std::to_string(of.row_bytes()) + " bytes"
          : "row " + std::to_string(asked.row) + " is not below the table's rows";
  return std::unexpected(TableError(done.error(), words));
}

TableResult<std::uint32_t> renumber(const EmbeddingTable& of, std::span<std::uint32_t> ids,
                                    bool whole) {
  if (of.dropped()) return std::unexpected(Error{Code::not_found, 0, of.id()});
  if (!whole) {
    return std::unexpected(
        TableError(Error{Code::invalid_argument, 0, 0}, "these are no whole ids"));
  }
  const auto memo = of.memo();
  const std::uint64_t rows = of.rows();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::uint32_t id = ids[i];
    if (id >= rows) {
      return std::unexpected(
          TableError(Error{Code::invalid_argument, 0, id},
                     embedding::describe({id, static_cast<std::uint32_t>(i), rows})));
    }
    if (memo != nullptr && id >= embedding::kPlaceBit) {
      return std::unexpected(TableError(
          Error{Code::invalid_argument, 0, id},
          "id " + std::to_string(id) + " at place " + std::to_string(i) +
              " is not below 2^31: a table with groups has no renumbered ids for such rows"));
    }
    const std::uint32_t place = memo == nullptr ? embedding::kNoPlace : memo->place_of(id);
    if (place != embedding::kNoPlace) ids[i] = place | embedding::kPlaceBit;
  }
  return memo == nullptr ? 0 : memo->number();
}

}  // namespace espalier::embedding_calls

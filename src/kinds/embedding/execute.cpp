// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/execute.hpp"

#include <span>
#include <string>
#include <utility>

#include "base/assert.hpp"
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
  return embedding::create_embedding_table(catalog, core->pool, asked.name, asked.shape);
}

Result<std::shared_ptr<EmbeddingTable>> obtain(catalog::Catalog& catalog, const Open& asked) {
  return catalog.open<EmbeddingTable>(asked.name);
}

Result<Numbers> execute(EmbeddingTable& of, const Info&) {
  if (of.dropped()) return fail(Code::not_found, of.id());
  return Numbers{of.all_numbers()};
}

TableResult<Appended> execute(EmbeddingTable& of, const Append& asked) {
  const auto first = of.append(bytes_in(asked.rows));
  if (first) return Appended{*first};
  if (first.error().code != Code::invalid_argument) return std::unexpected(first.error());
  return std::unexpected(TableError(
      first.error(), "these are no whole rows of " + std::to_string(of.row_bytes()) + " bytes"));
}

TableResult<Replaced> execute(EmbeddingTable& of, const Replace& asked) {
  const auto done = of.replace(asked.row, bytes_in(asked.bytes));
  if (done) return Replaced{};
  if (done.error().code != Code::invalid_argument) return std::unexpected(done.error());
  const std::string words =
      asked.bytes.size() != of.row_bytes()
          ? "a row has " + std::to_string(of.row_bytes()) + " bytes"
          : "row " + std::to_string(asked.row) + " is not below the table's rows";
  return std::unexpected(TableError(done.error(), words));
}

}  // namespace espalier::embedding_calls

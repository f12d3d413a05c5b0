// SPDX-License-Identifier: Apache-2.0
#include "table/table_object.hpp"

#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "wire/table_calls.hpp"

namespace espalier::table {

Result<std::shared_ptr<Table>> create_table(catalog::Catalog& catalog, memory::BufferPool& pool,
                                            std::string_view name, Schema schema,
                                            TableOptions options) {
  return catalog.create<Table>(
      name, [&](std::uint32_t id, std::string own_name) -> Result<std::shared_ptr<Table>> {
        return Table::create(pool, id, std::move(own_name), std::move(schema), options);
      });
}

std::string Table::description() const {
  const TableStats of = stats();
  wire::TableFacts facts{};
  facts.rows = of.rows;
  facts.pages = of.pages;
  facts.memory_bytes = of.memory_bytes;
  facts.row_bytes = schema_.row_bytes();
  facts.schema_bytes = static_cast<std::uint32_t>(schema_.encoded_bytes());
  std::string text(base::bytes_of(facts));
  text.resize(text.size() + facts.schema_bytes);
  schema_.encode(std::as_writable_bytes(std::span(text)).subspan(sizeof facts));
  if (encrypted_) {
    wire::CipherFacts cipher{};
    cipher.cipher = static_cast<std::uint32_t>(wire::TableCipher::aes_128_ctr);
    std::memcpy(cipher.salt, salt_.data(), sizeof cipher.salt);
    text += base::bytes_of(cipher);
  }
  return text;
}

catalog::ObjectNumbers Table::numbers() const {
  const TableStats of = stats();
  return {of.rows, of.memory_bytes};
}

}  // namespace espalier::table

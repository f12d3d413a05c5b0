// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/table_object.hpp"

#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "catalog/samples.hpp"
#include "crypto/secret_memory.hpp"
#include "kinds/table/format/table_calls.hpp"
#include "store/durable_store.hpp"
#include "wire/payload_reader.hpp"

namespace espalier::table {

namespace {

// What a record says that a table is made of: wire::CipherFacts, of a plain one all zeros, and the
// schema.
std::string form_of(const Schema& schema, const TableOptions& options) {
  wire::CipherFacts cipher{};
  if (options.encrypted) {
    cipher.cipher = static_cast<std::uint32_t>(wire::TableCipher::aes_128_ctr);
    std::memcpy(cipher.salt, options.salt->data(), sizeof cipher.salt);
  }
  static_assert(sizeof cipher + wire::kSchemaBytesMax <= catalog::kFormBytesMax);
  std::string form(base::bytes_of(cipher));
  form.resize(sizeof cipher + schema.encoded_bytes());
  schema.encode(std::as_writable_bytes(std::span(form)).subspan(sizeof cipher));
  return form;
}

Result<std::pair<Schema, TableOptions>> read_form(std::string_view form) {
  wire::PayloadReader reader(form);
  const auto cipher = reader.take<wire::CipherFacts>();
  const std::string_view bytes = reader.rest();
  const bool encrypted = cipher.cipher != 0;
  const bool good =
      !encrypted || cipher.cipher == static_cast<std::uint32_t>(wire::TableCipher::aes_128_ctr);
  auto schema = Schema::decode(std::as_bytes(std::span(bytes)));
  if (!reader.good() || !good || cipher.reserved != 0 || !schema) {
    return catalog::corrupt(catalog::RedoFault::form);
  }
  TableOptions options{.encrypted = encrypted};
  if (encrypted) std::memcpy(options.salt.emplace().data(), cipher.salt, sizeof cipher.salt);
  return std::pair(std::move(*schema), options);
}

}  // namespace

Result<std::shared_ptr<Table>> create_table(catalog::Catalog& catalog, memory::BufferPool& pool,
                                            std::string_view name, Schema schema,
                                            TableOptions options) {
  const auto durability = tree::agreed_durability(catalog, options.durability);
  if (!durability) return std::unexpected(durability.error());
  // No slot may ever be given twice, so what was given is to be known after a crash.
  if (options.encrypted && durability->value_or(Durability::sync) == Durability::none) {
    return fail(Code::unsupported);
  }
  if (options.encrypted && !options.salt) {
    if (auto drawn = crypto::draw_bytes(options.salt.emplace()); !drawn) {
      return std::unexpected(drawn.error());
    }
  }
  return catalog.create<Table>(
      name, form_of(schema, options),
      [&](std::uint32_t id, std::string own_name) -> Result<std::shared_ptr<Table>> {
        return Table::create(pool, id, std::move(own_name), std::move(schema), options);
      },
      *durability);
}

Result<std::shared_ptr<Table>> restore_table(catalog::Catalog& catalog, memory::BufferPool& pool,
                                             const catalog::CreatedObject& created) {
  auto form = read_form(created.form);
  if (!form) return std::unexpected(form.error());
  if (form->second.encrypted && created.durability == Durability::none) {
    return catalog::corrupt(catalog::RedoFault::form);
  }
  return catalog.restore<Table>(
      created, [&](std::uint32_t id, std::string own_name) -> Result<std::shared_ptr<Table>> {
        return Table::create(pool, id, std::move(own_name), std::move(form->first), form->second);
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

void Table::add_samples(catalog::SampleList& to) const {
  const TableStats of = stats();
  const auto count = [](const std::atomic<std::uint64_t>& number) {
    return number.load(std::memory_order_relaxed);
  };
  to.gauge({"rows", "", "Rows."}, of.rows);
  to.gauge({"row_bytes", "bytes", "Bytes of one row."}, of.row_bytes);
  to.gauge({"pages", "", "Pages of rows."}, of.pages);
  to.gauge({"memory_bytes", "bytes", "Memory of pages, page list and header."}, of.memory_bytes);
  to.gauge({"queries_running", "", "Queries of it that run."}, count(query_counts_.running));
  to.gauge({"queries_waiting", "", "Queries of it that wait for a place to run."},
           count(query_counts_.waiting));
  to.counter({"queries_ended", "",
              "Queries of it that ended with all rows, or early, as the client wanted."},
             count(query_counts_.ended));
  to.counter({"queries_failed", "", "Queries of it that ended with an error."},
             count(query_counts_.failed));
  to.counter({"queries_refused", "", "Queries of it for which there was no place to run or wait."},
             count(query_counts_.refused));
  to.counter({"read_rows", "", "Rows that queries have read beside the memory."},
             count(query_counts_.rows_read));
  to.counter({"read_bytes", "bytes", "Bytes that queries have read beside the memory."},
             count(query_counts_.bytes_read));
  to.counter({"sent_rows", "", "Rows of results that were sent to clients."},
             count(query_counts_.rows_sent));
  to.counter({"sent_bytes", "bytes", "Bytes of results that were sent to clients."},
             count(query_counts_.bytes_sent));
}

}  // namespace espalier::table

// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/tables.hpp"

#include <cerrno>
#include <cstring>

#include "base/clock.hpp"
#include "catalog/catalog.hpp"
#include "channel/objects.hpp"
#include "kinds/table/client/schema.hpp"
#include "kinds/table/client/table_key.hpp"
#include "kinds/table/ctr_cipher.hpp"

namespace espalier::client {

std::optional<TableError> wrong_with_name(std::string_view name) {
  if (catalog::Catalog::is_name(name)) return std::nullopt;
  return TableError{{Code::invalid_argument, 0, 0}, "a table's name has 1 to 255 bytes"};
}

std::optional<TableInfo> read_info(std::string_view name, std::uint64_t number,
                                   std::string_view description) {
  wire::TableFacts facts{};
  if (description.size() < sizeof facts) return std::nullopt;
  std::memcpy(&facts, description.data(), sizeof facts);
  description.remove_prefix(sizeof facts);
  if (facts.schema_bytes > description.size()) return std::nullopt;
  auto schema =
      table::Schema::decode(std::as_bytes(std::span(description.data(), facts.schema_bytes)));
  if (!schema || facts.row_bytes != schema->row_bytes()) return std::nullopt;
  description.remove_prefix(facts.schema_bytes);
  TableInfo info{
      std::string(name), static_cast<std::uint32_t>(number), std::move(*schema), facts, {}};
  if (description.empty()) return info;
  wire::CipherFacts cipher{};
  if (description.size() != sizeof cipher) return std::nullopt;
  std::memcpy(&cipher, description.data(), sizeof cipher);
  if (cipher.cipher != static_cast<std::uint32_t>(wire::TableCipher::aes_128_ctr)) {
    return std::nullopt;
  }
  std::memcpy(info.salt.emplace().data(), cipher.salt, sizeof cipher.salt);
  return info;
}

std::optional<TableError> RunLimits::reached() const {
  if (stop.stop_requested()) {
    return TableError{{Code::system, 0, ECANCELED}, "the query was cancelled by its caller"};
  }
  if (base::monotonic_ns() >= deadline_ns) {
    return TableError{{Code::system, 0, ETIMEDOUT}, "the query did not end before its deadline"};
  }
  return std::nullopt;
}

TableImpl::TableImpl(std::string name, table::Schema schema, std::optional<table::SaltBytes> salt)
    : name_(std::move(name)), schema_(SchemaImpl::handle(std::move(schema))), salt_(salt) {}

const table::Schema& TableImpl::schema() const { return SchemaImpl::of(schema_).schema; }

TableResult<std::uint64_t> TableImpl::append_with(std::optional<table::CtrCipher>& cipher,
                                                  std::span<std::byte> rows) {
  return cipher ? append_encrypted(rows, *cipher) : append(rows);
}

std::optional<TableError> TableImpl::wrong_without_key() const {
  if (!salt_ || options_.key) return std::nullopt;
  return TableError{{Code::invalid_argument, 0, 0},
                    "table '" + name_ + "' is encrypted, and was opened without its key"};
}

TableResult<void> TableImpl::use(const TableOptions& options) {
  if (options.key && TableKeyImpl::is_copy(*options.key)) return fail(Code::forked);
  if (options.key && !salt_) {
    return refuse_table({Code::invalid_argument, 0, 0},
                        "table '" + name_ + "' is not encrypted, and takes no key");
  }
  options_ = options;
  return {};
}

TableResult<std::optional<table::CtrCipher>> TableImpl::cipher() const {
  if (!salt_) return std::optional<table::CtrCipher>();
  if (auto wrong = wrong_without_key()) return std::unexpected(*std::move(wrong));
  auto made =
      table::CtrCipher::derived(TableKeyImpl::of(*options_.key), *salt_, table::kTableKeyInfo);
  if (!made) return refuse_table(made.error(), std::string(kWhatKeysNeed));
  return std::optional<table::CtrCipher>(*std::move(made));
}

TableResult<UserKeys> TableImpl::keys_of_run(const TableKey* result) const {
  if (auto wrong = wrong_without_key()) return std::unexpected(*std::move(wrong));
  UserKeys keys;
  if (salt_) keys.table = &TableKeyImpl::of(*options_.key);
  if (result != nullptr && TableKeyImpl::is_copy(*result)) return fail(Code::forked);
  if (result != nullptr) keys.result = &TableKeyImpl::of(*result);
  const bool some = keys.table != nullptr || keys.result != nullptr;
  if (some && is_far() && !options_.allow_keys_in_clear) {
    return refuse_table({Code::invalid_argument, 0, 0},
                        "the key would travel in clear: where nobody else can listen, allow it "
                        "(TableOptions::allow_keys_in_clear)");
  }
  return keys;
}

TableResult<std::unique_ptr<TableRun>> TableImpl::read(const RowRange& range,
                                                       const RunLimits& limits) {
  auto own = cipher();
  if (!own) return std::unexpected(std::move(own.error()));
  return begin_read(range, *std::move(own), limits);
}

TableResult<wire::QueryNumbers> TableImpl::run(std::span<const std::byte> pipeline,
                                               std::size_t result_row_bytes, const RowSink& sink,
                                               const UserKeys& keys) {
  RunLimits limits;
  limits.within_call = true;
  limits.keys = keys;
  const auto run = begin(pipeline, result_row_bytes, limits);
  if (!run) return std::unexpected(run.error());
  std::vector<std::byte> copy;
  for (;;) {
    auto rows = (*run)->next();
    if (!rows) return std::unexpected(rows.error());
    if ((*run)->may_change()) {
      copy.assign(rows->begin(), rows->end());
      *rows = copy;
    }
    if (!rows->empty() && sink(*rows)) continue;
    (*run)->end();
    return (*run)->numbers();
  }
}

TableResult<void> TablesImpl::drop(std::string_view name) {
  if (auto wrong = wrong_with_name(name)) return std::unexpected(*std::move(wrong));
  return in_words(channel::drop(*channel_, name, ObjectKind::table));
}

TableResult<std::vector<TableInfo>> TablesImpl::list() {
  auto listed = in_words(channel::list(*channel_, ObjectKind::table));
  if (!listed && listed.error().error.code == Code::corrupt) {
    listed.error().words = "the node's list is cut off";
  }
  if (!listed) return std::unexpected(std::move(listed.error()));
  std::vector<TableInfo> tables;
  for (const channel::ListedObject& object : *listed) {
    auto info = read_info(object.name, object.id, object.description);
    if (!info) return refuse_table({Code::corrupt, 0, 0}, "the node's list has what is no table");
    info->durability = object.durability;
    tables.push_back(*std::move(info));
  }
  return tables;
}

}  // namespace espalier::client

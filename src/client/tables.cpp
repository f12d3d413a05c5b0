// SPDX-License-Identifier: Apache-2.0
#include "client/tables.hpp"

#include <cerrno>

#include "base/clock.hpp"
#include "catalog/catalog.hpp"

namespace espalier::client {

std::optional<TableError> wrong_with_name(std::string_view name) {
  if (catalog::Catalog::is_name(name)) return std::nullopt;
  return TableError{{Code::invalid_argument, 0, 0}, "a table's name has 1 to 255 bytes"};
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

}  // namespace espalier::client

namespace espalier {

std::string message(const TableError& error) {
  return error.words.empty() ? message(error.error) : error.words;
}

}  // namespace espalier

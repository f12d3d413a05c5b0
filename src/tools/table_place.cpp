// SPDX-License-Identifier: Apache-2.0
#include "tools/table_place.hpp"

#include <fmt/format.h>

#include <utility>

#include "cmdline/text_codec.hpp"
#include "tools/data_place.hpp"
#include "tools/json_record.hpp"

namespace espalier::tools {

Outcome<TablePlace> open_tables(const Environment& environment,
                                const std::optional<std::string>& at, Access access) {
  auto address = required_address(environment, at);
  if (!address) return std::unexpected(address.error());
  if (*address == "embedded") {
    return misused(fmt::format("'{}' is no node, and tables are on nodes", *address),
                   "Start one: espalier serve --node-socket PATH.");
  }
  auto store = connect(environment, *address, access);
  if (!store) return std::unexpected(store.error());
  return TablePlace{std::move(*address), std::move(*store)};
}

Outcome<Table> open_table(const TablePlace& place, const std::string& name) {
  auto opened = place.store.open_table(name);
  if (!opened && opened.error().error.code == Code::not_found) {
    return failed(fmt::format("the node at {} has no table '{}'", place.address,
                              encode(name, cmdline::Encoding::escaped)),
                  "espalier table list shows those that it has.");
  }
  if (!opened && opened.error().error.code == Code::wrong_kind) {
    return other_kind(place.address, name, opened.error().error);
  }
  if (!opened) return refused(fmt::format("open table '{}'", name), opened.error());
  return std::move(*opened);
}

std::unexpected<Failure> refused(const std::string& what, const TableError& error) {
  if (error.words.empty()) return call_failed(what, error.error);
  return failed(fmt::format("cannot {}: {}", what, error.words));
}

}  // namespace espalier::tools

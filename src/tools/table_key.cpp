// SPDX-License-Identifier: Apache-2.0
#include "tools/table_key.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "channel/rings/node_address.hpp"

namespace espalier::tools {
namespace {

Outcome<void> use(const KeyFlags& flags, const std::optional<TableKey>& key,
                  client::TableImpl& table) {
  const TableOptions options{.key = key, .allow_keys_in_clear = flags.in_clear};
  if (auto used = table.use(options); !used) return misused(message(used.error()));
  return {};
}

}  // namespace

void add_key_flags(CLI::App& command, KeyFlags& flags, bool sends) {
  // An empty name is one, too: it names no file, and is no missing option.
  command
      .add_option_function<std::string>(
          "--key-file", [&flags](const std::string& file) { flags.file = file; },
          "File of the key of an encrypted table: 32 hexadecimal digits, mode 0600")
      ->type_name("FILE");
  if (!sends) return;
  command.add_flag("--allow-keys-in-clear", flags.in_clear,
                   "Send the key also where others on the way could read it");
}

Outcome<void> use_key(const KeyFlags& flags, client::TableImpl& table) {
  std::optional<TableKey> key;
  if (flags.file) {
    auto read = TableKey::read_file(*flags.file);
    if (!read) return failed(message(read.error()));
    key = *std::move(read);
  } else if (table.salt()) {
    return misused(fmt::format("table '{}' is encrypted", table.name()),
                   "Give its key: --key-file.");
  }
  return use(flags, key, table);
}

Outcome<std::optional<TableKey>> use_query_keys(const KeyFlags& flags, bool encrypts_result,
                                                const TablePlace& place, client::TableImpl& table) {
  const bool wanted = table.salt() || encrypts_result;
  const auto address = client::parse_node_address(place.address);
  const bool far = !address || client::is_far(*address);
  if (wanted && flags.file && !flags.in_clear && far) {
    return misused(fmt::format("to {} the key would travel in clear", place.address),
                   "Where nobody else can listen, give --allow-keys-in-clear.");
  }
  if (!encrypts_result) {
    if (auto used = use_key(flags, table); !used) return std::unexpected(used.error());
    return std::optional<TableKey>();
  }
  if (!flags.file) return misused("--encrypt-result needs a key", "Give one: --key-file.");
  auto key = TableKey::read_file(*flags.file);
  if (!key) return failed(message(key.error()));
  std::optional<TableKey> own;
  if (table.salt()) own = *key;
  if (auto used = use(flags, own, table); !used) return std::unexpected(used.error());
  return std::optional<TableKey>(*std::move(key));
}

}  // namespace espalier::tools

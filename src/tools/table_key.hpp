// SPDX-License-Identifier: Apache-2.0
// Keys of encrypted tables for the command: from a file that nobody else may read, never from the
// command line, which other users see.
//
// Thread: any.
#pragma once

#include <optional>
#include <string>

#include "espalier/table_key.hpp"
#include "kinds/table/client/tables.hpp"
#include "tools/environment.hpp"
#include "tools/table_place.hpp"

namespace CLI {
class App;
}

namespace espalier::tools {

struct KeyFlags {
  std::optional<std::string> file;
  bool in_clear = false;  ///< keys may travel where others could listen
};

/// `sends`: the command hands the key to the node.
void add_key_flags(CLI::App& command, KeyFlags& flags, bool sends);

/// Has a table use the key of the file. Errors: an encrypted table without a file, or a file for
/// another; those of TableKey::read_file().
[[nodiscard]] Outcome<void> use_key(const KeyFlags& flags, client::TableImpl& table);
/// The same where keys travel to the node, and one may be for the result, which is returned.
/// Errors: besides, the way to the node is no memory of this machine, and --allow-keys-in-clear is
/// missing.
[[nodiscard]] Outcome<std::optional<TableKey>> use_query_keys(const KeyFlags& flags,
                                                              bool encrypts_result,
                                                              const TablePlace& place,
                                                              client::TableImpl& table);

}  // namespace espalier::tools

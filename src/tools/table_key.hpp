// SPDX-License-Identifier: Apache-2.0
// Keys of encrypted tables for the command: from a file that no other user may read, never from the
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
  bool in_clear = false;  ///< keys may travel over transports that others could read
};

/// `sends`: the command sends the key to the node.
void add_key_flags(CLI::App& command, KeyFlags& flags, bool sends);

/// Sets the file's key on a table. Errors: an encrypted table without a file, or a file for an
/// unencrypted one; those of TableKey::read_file().
[[nodiscard]] Outcome<void> use_key(const KeyFlags& flags, client::TableImpl& table);
/// The same for commands that send keys to the node; a key for the result is returned. Errors:
/// besides, the transport is not memory of this machine, and --allow-keys-in-clear is missing.
[[nodiscard]] Outcome<std::optional<TableKey>> use_query_keys(const KeyFlags& flags,
                                                              bool encrypts_result,
                                                              const TablePlace& place,
                                                              client::TableImpl& table);

}  // namespace espalier::tools

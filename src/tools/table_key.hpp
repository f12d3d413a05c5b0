// SPDX-License-Identifier: Apache-2.0
// Keys of encrypted tables for the command: from a file that nobody else may read, never from the
// command line, which other users see.
//
// A key file has 32 hexadecimal digits, and perhaps the end of the line.
//
// Thread: any.
#pragma once

#include <optional>
#include <string>

#include "client/tables.hpp"
#include "table/ctr_cipher.hpp"
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

using UserKey = std::optional<table::Secret<table::KeyBytes>>;

/// `sends`: the command hands the key to the node.
void add_key_flags(CLI::App& command, KeyFlags& flags, bool sends);

/// Errors: it cannot be read, is another's, others may read it, or it is no key.
[[nodiscard]] Outcome<table::Secret<table::KeyBytes>> read_key_file(const std::string& path);

/// The key of a table, none where it is not encrypted. Errors: an encrypted table without a file,
/// or a file for another; those of the file.
[[nodiscard]] Outcome<UserKey> table_key(const Environment& environment, const KeyFlags& flags,
                                         const TablePlace& place, const client::TableImpl& table);
/// The same where the key travels to the node, and may be for the result. Errors: besides, the way
/// to the node is no memory of this machine, and --allow-keys-in-clear is missing.
[[nodiscard]] Outcome<UserKey> query_key(const Environment& environment, const KeyFlags& flags,
                                         bool encrypts_result, const TablePlace& place,
                                         const client::TableImpl& table);

}  // namespace espalier::tools

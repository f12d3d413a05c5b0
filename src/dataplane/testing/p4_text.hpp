// SPDX-License-Identifier: Apache-2.0
// For tests: what the P4 program says of its tables and actions, and entries read back from lines
// for bmv2's runtime CLI and held against that.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/switch_program.hpp"

namespace espalier::dataplane {

struct P4Key {
  std::string field;  // as it stands there
  std::string kind;   // exact, range
  unsigned bits = 0;
};

struct P4Table {
  std::vector<P4Key> keys;
  std::vector<std::string> actions;
  std::size_t size = 0;  // 0: it says none
};

struct P4Program {
  std::map<std::string, P4Table, std::less<>> tables;
  std::map<std::string, std::vector<unsigned>, std::less<>> actions;  // bits of what they are given
};

/// Reads tables and actions. Not a reader of P4: of this program, as it is laid out.
[[nodiscard]] P4Program read_p4(std::string_view text);

struct P4Entry {
  std::string table;
  std::string action;
  std::vector<std::uint64_t> matches;  // of a range both ends
  std::vector<std::uint64_t> given;
};

/// Reads the lines of entries, and says what in them the program does not have: another table,
/// action or number of fields, a number that is too wide. "" if all is well.
[[nodiscard]] std::string read_entries(const P4Program& program, std::string_view text,
                                       std::vector<P4Entry>& into);

/// The maps that entries are of, in the order of their numbers. Nothing: an entry comes after the
/// keys of its map, which would lead to tables that are not there whole.
[[nodiscard]] std::optional<SwitchProgram> program_of(const std::vector<P4Entry>& entries);

}  // namespace espalier::dataplane

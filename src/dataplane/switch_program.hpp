// SPDX-License-Identifier: Apache-2.0
// The program of a switch: maps, each with its keys and its tables, for each node that it lies on;
// its text, in which it is sent to a switch; and changes of single entries.
// docs/formats/index_tables.md has the grammar.
//
// Thread: one at a time.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/installed_function.hpp"
#include "dataplane/table_text.hpp"

namespace espalier::dataplane {

struct SwitchMap {
  MapKeys keys;
  IndexTables tables;
  TablesPart part{};  // where others have the rest
  HintTerms hints{};  // of gets that come in datagrams
  friend bool operator==(const SwitchMap&, const SwitchMap&) = default;
};

class SwitchProgram {
 public:
  static constexpr std::size_t kMapsMax = 64;

  /// Parses any text, trusted or not. Cost and memory: as parse_tables().
  static std::expected<SwitchProgram, TextFault> parse(std::string_view text);
  [[nodiscard]] std::string text() const;

  /// False: there are tables of this name, or kMapsMax of them.
  [[nodiscard]] bool add(SwitchMap map);
  /// The tables of this name, if there are some.
  void remove(const TablesName& name);
  [[nodiscard]] const std::vector<SwitchMap>& maps() const { return maps_; }
  [[nodiscard]] PacketFunction function() const;

  /// Reads changes, one for each line. What it gives can be made: maps and places exist.
  [[nodiscard]] std::expected<std::vector<EntryChange>, TextFault> parse_changes(
      std::string_view text) const;
  /// Requires: the places exist.
  void make(std::span<const EntryChange> changes);

  friend bool operator==(const SwitchProgram&, const SwitchProgram&) = default;

 private:
  std::vector<SwitchMap> maps_;
};

/// A line for each.
[[nodiscard]] std::string to_text(std::span<const EntryChange> changes);

}  // namespace espalier::dataplane

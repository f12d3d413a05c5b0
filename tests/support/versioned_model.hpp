// SPDX-License-Identifier: Apache-2.0
// A map's contents at every version, computed from the writes of a history: the oracle of the
// version replay.
//
// Each key has the list of its changes in version order, so the state of a key at any version costs
// a binary search and a scan costs its keys, deleted ones included.
// Thread: built once, then any number of readers. Points into the history, which must outlive it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/history.hpp"

namespace espalier::test {

constexpr Version kNever = ~Version{0};

/// Whether an answer is right at a version and, if not, from which version on it could be.
struct Fit {
  bool fits = false;
  /// The answer cannot be right before this version (kNever: never again).
  Version again = kNever;

  static Fit yes() { return {true, 0}; }
  static Fit not_before(Version version) { return {false, version}; }
};

class VersionedModel {
 public:
  /// Takes the history's contents and its applied writes. Requires: their versions are positive and
  /// differ.
  explicit VersionedModel(const History& history);

  struct State {
    std::optional<std::string_view> value;
    Version since = 0;  ///< the change that made it so
  };
  /// The state of a key after all writes up to `version`.
  [[nodiscard]] State at(std::string_view key, Version version) const;

  /// Whether the answer of an operation without effects (a read, or a write that did not apply)
  /// matches the map's content at `version`. Includes versions of items: an item's version lies
  /// between its last change and the version that was read.
  [[nodiscard]] Fit fit(const Operation& operation, Version version) const;

  /// Whether what an applied write reports of the state just before it is true.
  [[nodiscard]] std::optional<std::string> wrong_before(const Operation& write) const;

  [[nodiscard]] Version newest() const { return versions_.empty() ? 0 : versions_.back(); }

 private:
  struct Change {
    Version version = 0;
    std::optional<std::string_view> value;
  };
  using Changes = std::vector<Change>;
  using Keys = std::map<std::string_view, Changes, std::less<>>;

  // Visible items of a scan at one version, in the scan's order.
  class Cursor;

  // The next version above at which the key, or any key, changes.
  [[nodiscard]] Version next_change(std::string_view key, Version version) const;
  [[nodiscard]] Version next_write(Version version) const;
  [[nodiscard]] Fit fit_item(const ReadItem& item, Version version) const;
  [[nodiscard]] Fit fit_presence(std::string_view key, bool present, Version version) const;
  [[nodiscard]] Fit fit_get(const Operation& operation, Version version) const;
  [[nodiscard]] Fit fit_floor(const Operation& operation, Version version) const;
  [[nodiscard]] Fit fit_scan(const Operation& operation, Version version) const;
  [[nodiscard]] Fit fit_upside_down(const Operation& operation, Version version,
                                    Cursor& cursor) const;
  [[nodiscard]] Fit fit_count(const Operation& operation, Version version) const;
  [[nodiscard]] Fit fit_batch(const Operation& operation, Version version) const;
  [[nodiscard]] bool holds(const WriteBatch::Check& check, Version version) const;
  // The largest visible key <= key (or < key), with its changes.
  [[nodiscard]] Keys::const_iterator floor_at(std::string_view key, Version version) const;

  Keys keys_;
  std::vector<Version> versions_;  // of all writes, ascending
};

}  // namespace espalier::test

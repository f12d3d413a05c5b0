// SPDX-License-Identifier: Apache-2.0
// The difference between a reread configuration and the one that a node runs with, and whether the
// node can adopt it while it runs.
//
// Thread: any; no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "node/config.hpp"

namespace espalier::node {

/// A changed setting, both values as TOML.
struct SettingChange {
  std::string_view key;
  std::string before;
  std::string after;
  bool live = false;  ///< can be adopted; else it needs a restart
};

/// A change of a map that nodes create at their start.
struct MapChange {
  enum class Kind { added, removed, other_options };
  std::string name;
  Kind kind = Kind::added;
};

struct ConfigChanges {
  std::vector<SettingChange> settings;  ///< in the order of settings(); then peers, as one
  std::vector<MapChange> maps;          ///< by name
};

[[nodiscard]] ConfigChanges changes(const Config& running, const Config& wanted);

/// The running configuration with all changes that a node adopts while it runs.
[[nodiscard]] Config with_live_settings(const Config& running, const Config& wanted);

}  // namespace espalier::node

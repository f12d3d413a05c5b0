// SPDX-License-Identifier: Apache-2.0
// What of a configuration that was read again differs from the one that a node runs with, and
// whether the node can take it while it runs.
//
// Thread: any; no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "node/config.hpp"

namespace espalier::node {

/// A setting with another value, both as TOML has them.
struct SettingChange {
  std::string_view key;
  std::string before;
  std::string after;
  bool live = false;  ///< the node can take it; else it takes a restart
};

/// What became of a map that nodes make when they start.
struct MapChange {
  enum class Kind { added, removed, other_options };
  std::string name;
  Kind kind = Kind::added;
};

struct ConfigChanges {
  std::vector<SettingChange> settings;  ///< in the order of settings(); then peers, all as one
  std::vector<MapChange> maps;          ///< by name
};

[[nodiscard]] ConfigChanges changes(const Config& running, const Config& wanted);

/// The configuration with all of `wanted` that a node takes while it runs.
[[nodiscard]] Config with_live_settings(const Config& running, const Config& wanted);

}  // namespace espalier::node

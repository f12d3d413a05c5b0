// SPDX-License-Identifier: Apache-2.0
// The settings of a memory node as a table: the name, the limits and the default of each, and its
// field in Config. Loading, printing and the options of commands use this table; a test compares
// docs/configuration.md with it.
//
// The key "node.cores" is `cores` of [node] in a file, the variable ESPALIER_NODE_CORES and the
// flag --node-cores.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "node/config.hpp"
#include "node/config_value.hpp"

namespace espalier::node {

/// A setting of an Owner: of the Config, or of one of its maps.
template <class Owner>
struct SettingOf {
  std::string_view key;
  Rule rule;
  std::string_view fallback;                    ///< the default, as a variable's text
  std::string_view what;                        ///< one sentence for people
  void (*put)(Owner&, const Value&) = nullptr;  ///< the value must keep the rule
  Value (*get)(const Owner&) = nullptr;
  bool live = false;  ///< a running node adopts a new value
};
using Setting = SettingOf<Config>;
using MapSetting = SettingOf<MapConfig>;

/// In printing order; settings of a section are adjacent.
[[nodiscard]] std::span<const Setting> settings();

/// The keys of a [[map]] of a file. The first is its name.
[[nodiscard]] std::span<const MapSetting> map_settings();

/// Names of maps to create, where no [[map]] can be written: flag --map, once for each, and
/// variable ESPALIER_MAPS, separated by commas.
inline constexpr std::string_view kMapKey = "map";
inline constexpr std::string_view kMapsVariable = "ESPALIER_MAPS";
/// Other nodes: `NAME = "ADDRESS FILE"` in [peers] of a file; flag --peer, once for each, and
/// variable ESPALIER_PEERS, separated by commas, as NAME=ADDRESS FILE.
inline constexpr std::string_view kPeerKey = "peer";
inline constexpr std::string_view kPeersSection = "peers";
inline constexpr std::string_view kPeersVariable = "ESPALIER_PEERS";
/// The file to read: flag --config, variable ESPALIER_CONFIG.
inline constexpr std::string_view kFileKey = "config";

/// "node.cores" as "ESPALIER_NODE_CORES".
[[nodiscard]] std::string variable_name(std::string_view key);
/// "node.cores" as "--node-cores".
[[nodiscard]] std::string flag_name(std::string_view key);

/// Whether another part of Espalier reads this variable, so that its name is no mistake.
[[nodiscard]] bool is_variable_of_others(std::string_view name);

/// Suggests a known name for an unknown one, spelled as in a file ("node.cores", "[node]"), a
/// variable or a flag; empty if none is similar. A name without its section is similar.
[[nodiscard]] std::string nearest_key(std::string_view key);
[[nodiscard]] std::string nearest_section(std::string_view section);
[[nodiscard]] std::string nearest_map_key(std::string_view key);
[[nodiscard]] std::string nearest_variable(std::string_view name);
[[nodiscard]] std::string nearest_flag(std::string_view key);

}  // namespace espalier::node

// SPDX-License-Identifier: Apache-2.0
#include "node/config_change.hpp"

#include <map>

#include "node/config_settings.hpp"

namespace espalier::node {
namespace {

std::vector<MapChange> changes_of_maps(const Config& running, const Config& wanted) {
  struct Both {
    const MapConfig* running = nullptr;
    const MapConfig* wanted = nullptr;
  };
  std::map<std::string, Both> by_name;
  for (const MapConfig& map : running.maps) by_name[map.name].running = &map;
  for (const MapConfig& map : wanted.maps) by_name[map.name].wanted = &map;
  std::vector<MapChange> result;
  for (const auto& [name, both] : by_name) {
    if (both.running == nullptr) {
      result.push_back({name, MapChange::Kind::added});
    } else if (both.wanted == nullptr) {
      result.push_back({name, MapChange::Kind::removed});
    } else if (!(*both.running == *both.wanted)) {
      result.push_back({name, MapChange::Kind::other_options});
    }
  }
  return result;
}

// As a variable's text.
std::string joined(const std::vector<PeerConfig>& peers) {
  std::string text;
  for (const PeerConfig& peer : peers) {
    text += (text.empty() ? "" : ",") + peer.name + '=' +
            to_text(PeerValue{peer.address, peer.secret_file});
  }
  return to_toml({Kind::path}, text);
}

}  // namespace

ConfigChanges changes(const Config& running, const Config& wanted) {
  ConfigChanges result;
  for (const Setting& setting : settings()) {
    const Value before = setting.get(running);
    const Value after = setting.get(wanted);
    if (before == after) continue;
    result.settings.push_back(
        {setting.key, to_toml(setting.rule, before), to_toml(setting.rule, after), setting.live});
  }
  if (running.peers != wanted.peers) {
    result.settings.push_back({kPeersSection, joined(running.peers), joined(wanted.peers), false});
  }
  result.maps = changes_of_maps(running, wanted);
  return result;
}

Config with_live_settings(const Config& running, const Config& wanted) {
  Config result = running;
  for (const Setting& setting : settings()) {
    if (setting.live) setting.put(result, setting.get(wanted));
  }
  return result;
}

}  // namespace espalier::node

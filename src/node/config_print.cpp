// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "node/config_load.hpp"
#include "node/config_settings.hpp"
#include "node/config_text.hpp"

namespace espalier::node {
namespace {

void print_line(std::string& out, std::string_view name, const std::string& value,
                std::string_view origin) {
  constexpr std::size_t kCommentColumn = 36;
  const std::string assignment = fmt::format("{} = {}", name, value);
  fmt::format_to(std::back_inserter(out), "{:<{}}  # {}\n", assignment, kCommentColumn,
                 printable(origin));
}

}  // namespace

std::string print(const Loaded& loaded) {
  ESPALIER_ASSERT(loaded.origins.size() == settings().size());
  ESPALIER_ASSERT(loaded.map_origins.size() == loaded.config.maps.size());
  ESPALIER_ASSERT(loaded.peer_origins.size() == loaded.config.peers.size());
  std::string out;
  std::string_view section;
  for (std::size_t i = 0; i < settings().size(); ++i) {
    const Setting& setting = settings()[i];
    const std::size_t dot = setting.key.find('.');
    if (setting.key.substr(0, dot) != section) {
      if (!section.empty()) out += '\n';
      section = setting.key.substr(0, dot);
      fmt::format_to(std::back_inserter(out), "[{}]\n", section);
    }
    const bool share = setting.rule.kind == Kind::memory && !loaded.memory_share.empty();
    print_line(out, setting.key.substr(dot + 1), to_toml(setting.rule, setting.get(loaded.config)),
               share ? fmt::format("{}, {} of this machine", loaded.origins[i], loaded.memory_share)
                     : loaded.origins[i]);
  }
  if (!loaded.config.peers.empty())
    fmt::format_to(std::back_inserter(out), "\n[{}]\n", kPeersSection);
  for (std::size_t i = 0; i < loaded.config.peers.size(); ++i) {
    const PeerConfig& peer = loaded.config.peers[i];
    // A name with a dot would be a table's.
    print_line(out, to_toml({Kind::path}, peer.name),
               to_toml({Kind::path}, to_text(PeerValue{peer.address, peer.secret_file})),
               loaded.peer_origins.at(i));
  }
  if (loaded.config.node.place == Place::device) return out;  // it creates no maps
  for (std::size_t map = 0; map < loaded.config.maps.size(); ++map) {
    out += "\n[[map]]\n";
    for (std::size_t i = 0; i < map_settings().size(); ++i) {
      const MapSetting& setting = map_settings()[i];
      print_line(out, setting.key, to_toml(setting.rule, setting.get(loaded.config.maps[map])),
                 loaded.map_origins[map].at(i));
    }
  }
  return out;
}

}  // namespace espalier::node

// SPDX-License-Identifier: Apache-2.0
// Any bytes as a configuration file, variables and flags: a loaded configuration keeps every limit,
// and reads back the same from its printed form; a rejected one has at least one problem, without
// control characters.
//
// Lines of the input up to the first empty one are variables ("NAME=text"), or flags
// ("--key=text"), or of the machine ("@uid=0", "@memory=0"); the rest is the file.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "fabric/address.hpp"
#include "kinds/map/node/geometry.hpp"
#include "node/config_settings.hpp"
#include "node/config_text.hpp"
#include "node/testing/config_fixture.hpp"

namespace espalier::node {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

Machine machine_of(std::string_view input) {
  Machine machine;
  while (!input.empty()) {
    const std::string_view line = input.substr(0, input.find('\n'));
    input.remove_prefix(std::min(line.size() + 1, input.size()));
    if (line.empty()) break;
    const std::string name(line.substr(0, line.find('=')));
    const std::string text(line.substr(std::min(name.size() + 1, line.size())));
    if (name.starts_with("--")) {
      machine.flags.push_back({name.substr(2), text});
    } else if (name == "@uid" || name == "@memory") {
      std::uint64_t& number = name == "@uid" ? machine.user_id : machine.memory_bytes;
      std::from_chars(text.data(), text.data() + text.size(), number);
    } else {
      machine.environment.emplace_back(name, text);
    }
  }
  machine.files[std::string(kDefaultFile)] = input;
  machine.files["f"] = input;
  return machine;
}

template <class Owner>
void require_limits(const SettingOf<Owner>& setting, const Owner& owner, std::uint64_t memory) {
  const Value value = setting.get(owner);
  const Rule& rule = setting.rule;
  if (const auto* text = std::get_if<std::string>(&value)) {
    require(text->size() >= rule.min && text->size() <= rule.max);
    require(printable(*text) == *text);
  } else if (const auto* number = std::get_if<std::uint64_t>(&value)) {
    const bool word =
        rule.kind == Kind::level || rule.kind == Kind::place || rule.kind == Kind::durability;
    const std::uint64_t last = rule.kind == Kind::level ? 4 : rule.kind == Kind::place ? 1 : 2;
    require(word ? *number <= last : *number >= rule.min && *number <= rule.max);
    require(rule.kind != Kind::memory || memory == 0 || *number <= memory);
  }
}

void require_good(const Loaded& loaded, const Machine& machine) {
  const Config& config = loaded.config;
  for (const Setting& setting : settings()) {
    require_limits(setting, config, machine.memory_bytes);
  }
  require(!config.maps.empty() && config.maps.size() <= kMapsMax);
  std::set<std::string> names;
  for (const MapConfig& map : config.maps) {
    for (const MapSetting& setting : map_settings()) require_limits(setting, map, 0);
    require(tree::Geometry::valid(map.options));
    require(names.insert(map.name).second);
  }
  names.clear();
  require(config.peers.size() <= kPeersMax && loaded.peer_origins.size() == config.peers.size());
  for (const PeerConfig& peer : config.peers) {
    require(!peer.name.empty() && names.insert(peer.name).second);
    require(fabric::parse(peer.address).has_value());
    require(printable(peer.secret_file) == peer.secret_file);
  }
  require(loaded.origins.size() == settings().size());
  for (const std::string& origin : loaded.origins) require(!origin.empty());

  Machine again;
  again.memory_bytes = machine.memory_bytes;
  again.files[std::string(kDefaultFile)] = print(loaded);
  const auto reloaded = again.load();
  require(reloaded.has_value() && reloaded->config == config);
}

void run_one(std::string_view input) {
  const Machine machine = machine_of(input);
  const auto loaded = machine.load();
  if (loaded) {
    require_good(*loaded, machine);
    return;
  }
  require(!loaded.error().empty());
  for (const Problem& problem : loaded.error()) {
    require(!problem.where.empty() && !problem.what.empty() && !problem.hint.empty());
    const std::string line = describe(problem);
    require(printable(line) == line);
  }
}

}  // namespace
}  // namespace espalier::node

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::node::run_one(std::string(data, data + size));
  return 0;
}

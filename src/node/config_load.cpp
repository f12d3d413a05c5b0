// SPDX-License-Identifier: Apache-2.0
#include "node/config_load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>

#include "node/config_file.hpp"
#include "node/config_settings.hpp"
#include "node/config_text.hpp"

namespace espalier::node {
namespace {

/// A map with the origins of its values.
struct OriginatedMap {
  MapConfig config;
  std::vector<std::string> origins;
};

/// A map by name alone, from flags and variables.
struct NamedMap {
  std::string name;
  std::string origin;
};

struct OriginatedPeer {
  PeerConfig config;
  std::string origin;
};

OriginatedMap default_map(std::string name, const std::string& name_origin) {
  OriginatedMap map;
  map.config.name = std::move(name);
  map.origins.assign(map_settings().size(), "default");
  map.origins.front() = name_origin;
  return map;
}

/// One load. Reads sources from the weakest to the strongest, so that the last value stays; uses a
/// default only for a setting without a value.
class Loader {
 public:
  explicit Loader(const World& world) : world_(world) {
    loaded_.config.maps.clear();
    loaded_.origins.resize(settings().size());
  }

  std::expected<Loaded, std::vector<Problem>> load(std::span<const FlagValue> flags) {
    read_file(flags);
    read_environment();
    read_flags(flags);
    take_defaults();
    choose_maps();
    choose_peers();
    if (loaded_.config.node.place == Place::device) check_device();
    check_clock();
    check_durability();
    if (!problems_.empty()) return std::unexpected(std::move(problems_));
    return std::move(loaded_);
  }

 private:
  void complain(std::string where, std::string what, std::string hint) {
    problems_.push_back({std::move(where), std::move(what), std::move(hint)});
  }

  /// An unknown name. `nearest`: the suggestion.
  void complain_unknown(const std::string& where, std::string_view kind, std::string_view name,
                        const std::string& nearest) {
    complain(where, fmt::format("there is no {} {}", kind, in_short_quotes(name)),
             nearest.empty() ? "take it away, or correct it; docs/configuration.md lists all"
                             : fmt::format("did you mean {}?", nearest));
  }

  /// Sets the value of setting `at`, from one source.
  void give(std::size_t at, const Raw& raw, const std::string& origin) {
    const Setting& setting = settings()[at];
    const auto value = parse_value(setting.rule, raw, world_.memory_bytes);
    loaded_.origins[at] = origin;
    if (!value) {
      complain(origin, fmt::format("{} {}", setting.key, value.error().what), value.error().hint);
      return;
    }
    setting.put(loaded_.config, *value);
    if (setting.rule.kind == Kind::memory) {
      const auto* untyped = std::get_if<Text>(&raw);
      const auto* typed = std::get_if<std::string>(&raw);
      const std::string text = untyped != nullptr ? untyped->text : typed != nullptr ? *typed : "";
      loaded_.memory_share = text.ends_with('%') ? text : "";
    }
  }

  static std::optional<std::size_t> index_of(std::string_view key) {
    const auto found = std::ranges::find(settings(), key, &Setting::key);
    if (found == settings().end()) return std::nullopt;
    return static_cast<std::size_t>(found - settings().begin());
  }

  [[nodiscard]] const std::string* variable(std::string_view name) const {
    const auto found =
        std::ranges::find(world_.environment, name, &std::pair<std::string, std::string>::first);
    return found == world_.environment.end() ? nullptr : &found->second;
  }

  // --- the file

  void read_file(std::span<const FlagValue> flags) {
    std::string where = "default file";
    path_ = kDefaultFile;
    const std::string file_variable = variable_name(kFileKey);
    if (const std::string* named = variable(file_variable)) {
      path_ = *named;
      where = "environment " + file_variable;
    }
    const auto flag = std::ranges::find(flags, kFileKey, &FlagValue::key);
    if (flag != flags.end()) {
      path_ = flag->text;
      where = "flag " + flag_name(kFileKey);
    }
    const bool optional = where == "default file";
    const Result<std::string> text =
        path_.empty() ? fail(Code::not_found) : world_.read_file(path_);
    if (text) {
      take_file(read_toml(*text));
    } else if (!optional || text.error().code != Code::not_found) {
      complain(
          where,
          fmt::format("cannot read the file {}: {}", in_short_quotes(path_), why(text.error())),
          "name a file that exists and may be read, or none");
    }
  }

  [[nodiscard]] static std::string why(const Error& error) {
    if (error.code == Code::not_found) return "there is none";
    if (error.code == Code::unsupported) return "it is a FIFO, and a node reads its file again";
    return message(error);
  }

  [[nodiscard]] std::string in_file(std::size_t line) const {
    return line == 0 ? fmt::format("file {}", printable(path_))
                     : fmt::format("file {}:{}", printable(path_), line);
  }

  void take_file(const FileContent& content) {
    for (const FileProblem& problem : content.problems) {
      complain(in_file(problem.line), problem.what, problem.hint);
    }
    for (const FileEntry& entry : content.loose) {
      // An array of tables with a name other than map is here, too.
      std::string guess = nearest_key(entry.key);
      if (guess.empty()) guess = nearest_section(entry.key);
      complain_unknown(in_file(entry.line), "key", entry.key, guess);
    }
    for (const FileSection& section : content.sections) {
      if (section.name == kPeersSection) {
        for (const FileEntry& entry : section.entries) {
          add_peer(file_peers_, entry.key, entry.raw, in_file(entry.line));
        }
      } else if (is_section(section.name)) {
        for (const FileEntry& entry : section.entries) take_file_entry(section, entry);
      } else {
        complain_unknown(in_file(section.line), "section", section.name,
                         nearest_section(section.name));
      }
    }
    for (const FileSection& map : content.maps) take_file_map(map);
  }

  static bool is_section(std::string_view name) {
    return std::ranges::any_of(settings(), [&](const Setting& setting) {
      return setting.key.substr(0, setting.key.find('.')) == name;
    });
  }

  void take_file_entry(const FileSection& section, const FileEntry& entry) {
    const std::string key = section.name + "." + entry.key;
    const std::string where = in_file(entry.line);
    if (const auto at = index_of(key)) {
      give(*at, entry.raw, where);
    } else {
      complain_unknown(where, "key", key, nearest_key(key));
    }
  }

  void take_file_map(const FileSection& section) {
    OriginatedMap map = default_map("", in_file(section.line));
    bool named = false;
    for (const FileEntry& entry : section.entries) {
      const std::string where = in_file(entry.line);
      const auto found = std::ranges::find(map_settings(), entry.key, &MapSetting::key);
      if (found == map_settings().end()) {
        complain_unknown(where, "key of a map", entry.key, nearest_map_key(entry.key));
        continue;
      }
      named = named || found == map_settings().begin();
      map.origins[static_cast<std::size_t>(found - map_settings().begin())] = where;
      if (const auto value = parse_value(found->rule, entry.raw, world_.memory_bytes)) {
        found->put(map.config, *value);
      } else {
        complain(where, fmt::format("map.{} {}", found->key, value.error().what),
                 value.error().hint);
      }
    }
    if (!named) {
      complain(in_file(section.line), "a map without a name", "give it one: name = \"default\"");
    }
    // A map whose name was rejected has none, and cannot be a duplicate.
    if (!map.config.name.empty() && !file_names_.insert(map.config.name).second) {
      complain_twice(map.origins.front(), map.config.name);
    }
    file_maps_.push_back(std::move(map));
  }

  void complain_twice(const std::string& where, const std::string& name) {
    complain(where, fmt::format("there are two maps {}", in_short_quotes(name)),
             "take one away, or give it another name");
  }

  // --- peers

  void add_peer(std::vector<OriginatedPeer>& list, const std::string& name, const Raw& raw,
                const std::string& where) {
    const auto good_name = parse_value({Kind::name, 1, 64}, Text{name}, 0);
    if (!good_name) {
      return complain(where, "the name of a peer " + good_name.error().what,
                      good_name.error().hint);
    }
    const auto value = parse_peer(raw);
    if (!value) {
      return complain(where, fmt::format("{}.{} {}", kPeersSection, name, value.error().what),
                      value.error().hint);
    }
    const bool known = std::ranges::any_of(
        list, [&](const OriginatedPeer& peer) { return peer.config.name == name; });
    if (known) {
      complain(where, fmt::format("there are two peers {}", in_short_quotes(name)),
               "take one away, or give it another name");
    } else if (list.size() <= kPeersMax) {  // one more than the limit suffices for the rejection
      list.push_back({{name, value->address, value->secret_file}, where});
    }
  }

  /// NAME=ADDRESS FILE, as in flags and variables.
  void add_named_peer(std::vector<OriginatedPeer>& list, const std::string& text,
                      const std::string& where) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return complain(where, fmt::format("{} names no address", in_short_quotes(text)),
                      "give NAME=ADDRESS, and behind a space the file of the secret");
    }
    add_peer(list, text.substr(0, equals), Text{text.substr(equals + 1)}, where);
  }

  void choose_peers() {
    auto& chosen = !peers_by_flag_.empty()       ? peers_by_flag_
                   : !peers_by_variable_.empty() ? peers_by_variable_
                                                 : file_peers_;
    for (OriginatedPeer& peer : chosen) {
      loaded_.config.peers.push_back(std::move(peer.config));
      loaded_.peer_origins.push_back(std::move(peer.origin));
    }
    if (loaded_.config.peers.size() > kPeersMax) {
      complain(loaded_.peer_origins.front(), fmt::format("there are more than {} peers", kPeersMax),
               "name fewer");
    }
  }

  // --- variables and flags

  void read_environment() {
    std::set<std::string_view> seen;
    for (const auto& [name, text] : world_.environment) {
      if (!name.starts_with("ESPALIER_") || is_variable_of_others(name)) continue;
      if (!seen.insert(name).second || name == variable_name(kFileKey)) continue;
      const std::string where = "environment " + printable(name);
      const auto found = std::ranges::find_if(
          settings(), [&](const Setting& setting) { return variable_name(setting.key) == name; });
      if (name == kMapsVariable) {
        for (std::size_t at = 0; at <= text.size();) {
          const std::size_t end = std::min(text.find(',', at), text.size());
          add_named(named_by_variable_, text.substr(at, end - at), where);
          at = end + 1;
        }
      } else if (name == kPeersVariable) {
        for (std::size_t at = 0; at <= text.size();) {
          const std::size_t end = std::min(text.find(',', at), text.size());
          add_named_peer(peers_by_variable_, text.substr(at, end - at), where);
          at = end + 1;
        }
      } else if (found != settings().end()) {
        give(static_cast<std::size_t>(found - settings().begin()), Text{text}, where);
      } else {
        complain_unknown(where, "variable", name, nearest_variable(name));
      }
    }
  }

  void read_flags(std::span<const FlagValue> flags) {
    std::set<std::string_view> seen;
    for (const auto& [key, text] : flags) {
      const std::string where = "flag " + printable(flag_name(key));
      const auto at = index_of(key);
      if (key == kMapKey) {
        add_named(named_by_flag_, text, where);
      } else if (key == kPeerKey) {
        add_named_peer(peers_by_flag_, text, where);
      } else if (!at && key != kFileKey) {
        complain_unknown(where, "flag", flag_name(key), nearest_flag(key));
      } else if (!seen.insert(key).second) {
        complain(where, "is given twice", "give it once");
      } else if (at) {
        give(*at, Text{text}, where);
      }
    }
  }

  void add_named(std::vector<NamedMap>& list, const std::string& name, const std::string& where) {
    const auto value = parse_value(map_settings().front().rule, Text{name}, 0);
    if (!value) {
      complain(where, "the name of a map " + value.error().what, value.error().hint);
    } else if (std::ranges::find(list, name, &NamedMap::name) != list.end()) {
      complain_twice(where, name);
    } else if (list.size() <= kMapsMax) {  // one more than the limit suffices for the rejection
      list.push_back({name, where});
    }
  }

  // --- defaults

  void take_defaults() {
    for (std::size_t at = 0; at < settings().size(); ++at) {
      if (!loaded_.origins[at].empty()) continue;
      const Setting& setting = settings()[at];
      const bool socket = setting.key == "node.socket";
      give(at, Text{socket ? default_socket(setting) : std::string(setting.fallback)}, "default");
    }
  }

  [[nodiscard]] std::string default_socket(const Setting& setting) const {
    // systemd creates this folder for a service, whatever its user. It may list several.
    const std::string* folder = variable("RUNTIME_DIRECTORY");
    if (folder != nullptr && folder->starts_with('/')) {
      return folder->substr(0, folder->find(':')) + "/espalier.sock";
    }
    if (world_.user_id == 0) return std::string(setting.fallback);
    folder = variable("XDG_RUNTIME_DIR");
    // The specification of these folders says to ignore a relative path.
    if (folder != nullptr && folder->starts_with('/')) return *folder + "/espalier.sock";
    return own_folder(world_.user_id) + "/espalier.sock";
  }

  void choose_maps() {
    const auto& named = named_by_flag_.empty() ? named_by_variable_ : named_by_flag_;
    if (!named.empty()) {
      for (const NamedMap& map : named) add_map(map_of_name(map));
    } else if (!file_maps_.empty()) {
      for (OriginatedMap& map : file_maps_) add_map(std::move(map));
    } else {
      const std::string name(map_settings().front().fallback);
      add_map(default_map(name, "default"));
    }
    if (loaded_.config.maps.size() > kMapsMax) {
      complain(loaded_.map_origins.front().front(),
               fmt::format("there are more than {} maps", kMapsMax), "make fewer at the start");
    }
  }

  void check_clock() {
    const Config::Node& node = loaded_.config.node;
    if (!node.shared_clock || node.place != Place::device) return;
    complain(loaded_.origins[*index_of("node.shared_clock")], "a device has no maps",
             "give node.shared_clock to the host");
  }

  /// Data in a folder are durable immediately, or soon; without a folder they are in memory alone.
  void check_durability() {
    const Config::Data& data = loaded_.config.data;
    const std::string& where = loaded_.origins[*index_of("data.durability")];
    if (data.durability == Durability::none && !data.dir.empty()) {
      complain(where, "a node with a data folder keeps what is written",
               "leave out data.dir, or give sync or async");
    }
    if (data.durability == Durability::async && data.dir.empty()) {
      complain(where, "what is written cannot be kept without a folder", "give data.dir");
    }
  }

  /// A device serves the maps of its host, which is its only peer. It offers nothing one-sided.
  void check_device() {
    const auto origin = [this](std::string_view key) { return loaded_.origins[*index_of(key)]; };
    const Config::Node& node = loaded_.config.node;
    if (fabric_addresses(node.host).size() != 1) {
      complain(origin("node.place"), "a device needs one host",
               "give its address: --host shm:PATH, or another one of the fabric");
    }
    if (node.one_sided) {
      complain(origin("node.one_sided"), "a device has no memory of maps to be read",
               "give node.one_sided to the host");
    }
    if (!node.datagrams.empty()) {
      complain(origin("node.datagrams"), "a device takes no datagrams",
               "give node.datagrams to the host");
    }
    if (!named_by_flag_.empty() || !named_by_variable_.empty() || !file_maps_.empty()) {
      complain(loaded_.map_origins.front().front(), "a device makes no maps",
               "name them at the host, or make them with espalier map create");
    }
    if (!loaded_.config.data.dir.empty()) {
      complain(origin("data.dir"), "a device keeps nothing", "give data.dir to the host");
    }
    if (!loaded_.config.peers.empty()) {
      complain(loaded_.peer_origins.front(), "a device has no peers but its host",
               "name them at the host");
    }
  }

  void add_map(OriginatedMap map) {
    loaded_.config.maps.push_back(std::move(map.config));
    loaded_.map_origins.push_back(std::move(map.origins));
  }

  [[nodiscard]] OriginatedMap map_of_name(const NamedMap& named) const {
    const auto found = std::ranges::find_if(
        file_maps_, [&](const OriginatedMap& map) { return map.config.name == named.name; });
    if (found == file_maps_.end()) return default_map(named.name, named.origin);
    OriginatedMap map = *found;
    map.origins.front() = named.origin;
    return map;
  }

  const World& world_;
  std::string path_;
  std::vector<OriginatedMap> file_maps_;
  std::set<std::string> file_names_;
  std::vector<NamedMap> named_by_variable_;
  std::vector<NamedMap> named_by_flag_;
  std::vector<OriginatedPeer> file_peers_;
  std::vector<OriginatedPeer> peers_by_variable_;
  std::vector<OriginatedPeer> peers_by_flag_;
  Loaded loaded_;
  std::vector<Problem> problems_;
};

}  // namespace

std::string own_folder(std::uint64_t user_id) { return fmt::format("/tmp/espalier-{}", user_id); }

std::string describe(const Problem& problem) {
  return fmt::format("{}: {}; {}", problem.where, problem.what, problem.hint);
}

std::expected<Loaded, std::vector<Problem>> load(const World& world,
                                                 std::span<const FlagValue> flags) {
  return Loader(world).load(flags);
}

}  // namespace espalier::node

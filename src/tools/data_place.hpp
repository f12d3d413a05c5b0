// SPDX-License-Identifier: Apache-2.0
// Resolves the data of a command: files, or a map of a node.
//
//     --file FILE        files; FILE... without --file where a command takes that
//     --at ADDRESS       a node, and --map NAME a map of it
//     ESPALIER_AT        the default node, if neither of the others is given
//
// `load` takes both: it loads files into the map at the address.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>

#include "channel/rings/node_address.hpp"
#include "espalier/hash_map.hpp"
#include "tools/environment.hpp"
#include "tools/loader.hpp"

namespace espalier::tools {

inline constexpr std::string_view kAddressVariable = "ESPALIER_AT";
inline constexpr std::string_view kDefaultMap = "default";

/// Checks what the parser cannot: the data is in one place, options without meaning there are
/// absent, and standard input is read only once.
[[nodiscard]] Outcome<void> check_source(const Environment& environment,
                                         const SourceOptions& options);
/// The same for `load`.
[[nodiscard]] Outcome<void> check_load_source(const Environment& environment,
                                              const SourceOptions& options);

/// Checks that no option describes a new map. Requires: the data is on a node.
[[nodiscard]] Outcome<void> check_nothing_made(const SourceOptions& options);

/// The node that has the data; nullopt: it is in files. Requires: check_source() succeeded.
[[nodiscard]] std::optional<std::string> data_address(const Environment& environment,
                                                      const SourceOptions& options);
/// The node that `load` loads into; nullopt: a map of this process.
[[nodiscard]] std::optional<std::string> load_address(const Environment& environment,
                                                      const SourceOptions& options);

/// The address from --at or ESPALIER_AT, for a command that only works on a node.
[[nodiscard]] Outcome<std::string> required_address(const Environment& environment,
                                                    const std::optional<std::string>& at);

/// The client's identity and the expected user of nodes: from --secret-file and --node-user, else
/// the library's defaults.
[[nodiscard]] Outcome<client::ConnectOptions> connect_options(const Environment& environment);

/// Connects to a node. A failure says what to do about it.
[[nodiscard]] Outcome<Store> connect(const Environment& environment, const std::string& address,
                                     Access access = Access::rpc);
[[nodiscard]] Outcome<Map> open_map(const Store& store, const std::string& address,
                                    const std::string& name);

/// The names of all maps.
[[nodiscard]] Outcome<std::vector<std::string>> map_names(const Store& store);
[[nodiscard]] Outcome<std::vector<std::string>> hash_map_names(const Store& store);
/// The map's statistics.
[[nodiscard]] Outcome<MapStats> stats_of(const Map& map);
[[nodiscard]] Outcome<HashMapStats> stats_of(const HashMap& map);

/// The map that a command reads: filled from files, every record good or allowed to be bad; or on a
/// node. A node does not know whether its map has values: the report says that it does.
[[nodiscard]] Outcome<Dataset> open_data(Environment& environment, const SourceOptions& options);

/// Whether a call on an ordered map failed because the name is a hash map's.
[[nodiscard]] bool is_hash_map(const Error& error);
/// A map of either kind, with its store.
struct AnyMap {
  Store store;
  std::variant<Map, HashMap> map;
  bool has_values = true;  ///< as in LoadReport; unknown for a map on a node
};
/// A map of a node of either kind, depending on the name.
[[nodiscard]] Outcome<std::variant<Map, HashMap>> open_any_map(const Store& store,
                                                               const std::string& address,
                                                               const std::string& name);
/// The same for commands that accept hash maps of nodes, too.
[[nodiscard]] Outcome<AnyMap> open_any_data(Environment& environment, const SourceOptions& options);
/// Longest key that it takes, in bytes.
[[nodiscard]] inline std::size_t key_bytes_max(const Map& map) { return map.max_key_bytes(); }
[[nodiscard]] inline std::size_t key_bytes_max(const HashMap&) { return HashMap::kKeyBytesMax; }

/// A name is taken: by which object, and what to do. Requires: already_exists.
[[nodiscard]] std::unexpected<Failure> name_taken(const std::string& address,
                                                  const std::string& name, const Error& error);
/// A name belongs to another kind: to which, and what to do. Requires: wrong_kind.
[[nodiscard]] std::unexpected<Failure> other_kind(const std::string& address,
                                                  const std::string& name, const Error& error);
/// A call to a node has failed: the action, the reason, and what to do.
[[nodiscard]] std::unexpected<Failure> call_failed(const std::string& what, const Error& error);

}  // namespace espalier::tools

// SPDX-License-Identifier: Apache-2.0
// Where the data of a command is: in files, or in a map of a node.
//
//     --file FILE        files; FILE... without --file where a command takes that
//     --at ADDRESS       a node, and --map NAME a map of it
//     ESPALIER_AT        the same node for many commands; counts where neither of the others stands
//
// `load` takes both: files are what it loads, an address is where to.
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

/// Checks what the parser cannot: that the data is in one place, that options which have no meaning
/// there are not given, and that standard input is read only once.
[[nodiscard]] Outcome<void> check_source(const Environment& environment,
                                         const SourceOptions& options);
/// The same for `load`.
[[nodiscard]] Outcome<void> check_load_source(const Environment& environment,
                                              const SourceOptions& options);

/// Checks that no option says what a new map is like. Requires: the data is on a node.
[[nodiscard]] Outcome<void> check_nothing_made(const SourceOptions& options);

/// The node on which the data is; nothing: it is in files. Requires: check_source() is content.
[[nodiscard]] std::optional<std::string> data_address(const Environment& environment,
                                                      const SourceOptions& options);
/// The node that `load` loads into; nothing: a map of this process.
[[nodiscard]] std::optional<std::string> load_address(const Environment& environment,
                                                      const SourceOptions& options);

/// The address that --at or ESPALIER_AT gives to a command that works on a node only.
[[nodiscard]] Outcome<std::string> required_address(const Environment& environment,
                                                    const std::optional<std::string>& at);

/// As whom this run comes to nodes, and as whom they may run: --secret-file and --node-user say so.
/// What is not given the library looks for.
[[nodiscard]] Outcome<client::ConnectOptions> connect_options(const Environment& environment);

/// Connects to a node. Fails with what to do about it.
[[nodiscard]] Outcome<Store> connect(const Environment& environment, const std::string& address,
                                     Access access = Access::rpc);
[[nodiscard]] Outcome<Map> open_map(const Store& store, const std::string& address,
                                    const std::string& name);

/// The names of all maps.
[[nodiscard]] Outcome<std::vector<std::string>> map_names(const Store& store);
[[nodiscard]] Outcome<std::vector<std::string>> hash_map_names(const Store& store);
/// What the map tells of itself.
[[nodiscard]] Outcome<MapStats> stats_of(const Map& map);
[[nodiscard]] Outcome<HashMapStats> stats_of(const HashMap& map);

/// The map that a command reads: filled from files, every record good or allowed to be bad; or on a
/// node. Nobody knows whether there are values in a map on a node: the report says that there are.
[[nodiscard]] Outcome<Dataset> open_data(Environment& environment, const SourceOptions& options);

/// Whether what a call on an ordered map has found by its name is a hash map.
[[nodiscard]] bool is_hash_map(const Error& error);
/// A map of either kind, with its store.
struct AnyMap {
  Store store;
  std::variant<Map, HashMap> map;
  bool has_values = true;  ///< as LoadReport says; of a map on a node nobody knows
};
/// A map of a node of either kind: what has the name decides.
[[nodiscard]] Outcome<std::variant<Map, HashMap>> open_any_map(const Store& store,
                                                               const std::string& address,
                                                               const std::string& name);
/// The same for commands that take hash maps of nodes, too.
[[nodiscard]] Outcome<AnyMap> open_any_data(Environment& environment, const SourceOptions& options);
/// Bytes of the longest key that it takes.
[[nodiscard]] inline std::size_t key_bytes_max(const Map& map) { return map.max_key_bytes(); }
[[nodiscard]] inline std::size_t key_bytes_max(const HashMap&) { return HashMap::kKeyBytesMax; }

/// A name is taken: by what, and what to do. Requires: already_exists.
[[nodiscard]] std::unexpected<Failure> name_taken(const std::string& address,
                                                  const std::string& name, const Error& error);
/// A name is that of another kind: of which, and what to do. Requires: wrong_kind.
[[nodiscard]] std::unexpected<Failure> other_kind(const std::string& address,
                                                  const std::string& name, const Error& error);
/// A call to a node has failed: what could not be done, why, and what to do.
[[nodiscard]] std::unexpected<Failure> call_failed(const std::string& what, const Error& error);

}  // namespace espalier::tools

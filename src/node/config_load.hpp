// SPDX-License-Identifier: Apache-2.0
// Loads the configuration of a memory node from flags, variables and a file, in this order of
// precedence, and from defaults. Either all of it is valid, or every problem is reported together.
//
// All input is passed as values and one function, so tests and fuzzers need no files.
//
// Maps to create: those of --map, else those of ESPALIER_MAPS, else all [[map]] of the file, else
// one called "default". A named map that is also in the file has the options given there.
//
// Peers: those of --peer, else those of ESPALIER_PEERS, else those of [peers].
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "espalier/error.hpp"
#include "node/config.hpp"

namespace espalier::node {

/// The file that is read if it exists and no other is named.
inline constexpr std::string_view kDefaultFile = "/etc/espalier/espalier.toml";

/// The inputs from the machine.
struct World {
  /// All variables. Of two with the same name the first counts, as for getenv().
  std::vector<std::pair<std::string, std::string>> environment;
  /// Reads a file. Errors: not_found if there is none; unsupported: it is a FIFO; others unchanged.
  std::function<Result<std::string>(const std::string& path)> read_file;
  std::uint64_t user_id = 0;
  std::uint64_t memory_bytes = 0;  ///< of the machine, or of the control group; 0: unknown
};

/// The folder of the socket of a user that is not root and has no runtime folder from the system.
/// All users may write /tmp, so the node must verify that the folder is this user's alone.
[[nodiscard]] std::string own_folder(std::uint64_t user_id);

/// One flag of the command line, uninterpreted. The key is a setting's ("node.cores"), "map" or
/// "peer", which may be repeated, or "config".
struct FlagValue {
  std::string key;
  std::string text;
};

/// A mistake: its place ("environment ESPALIER_NODE_CORES"), what is wrong, and how to correct it.
struct Problem {
  std::string where;
  std::string what;
  std::string hint;
};

/// "where: what; hint", for one line on a terminal.
[[nodiscard]] std::string describe(const Problem& problem);

/// A valid configuration, with the origin of each value: "default", "flag --node-cores",
/// "environment ESPALIER_NODE_CORES", "file /etc/espalier/espalier.toml:12".
struct Loaded {
  Config config;
  std::vector<std::string> origins;                   ///< one for each of settings()
  std::vector<std::vector<std::string>> map_origins;  ///< for each map, each of map_settings()
  std::vector<std::string> peer_origins;              ///< for each peer
  std::string memory_share;  ///< memory.limit as given, if a percentage; else empty
};

/// Loads the configuration.
/// Errors: at least one problem, including every wrong value, even if another value takes
/// precedence. Throws only what `read_file` throws, and std::bad_alloc.
[[nodiscard]] std::expected<Loaded, std::vector<Problem>> load(const World& world,
                                                               std::span<const FlagValue> flags);

/// The configuration as a TOML file, with the origins as comments. load() of this file alone, on
/// the same machine, gives the same configuration.
[[nodiscard]] std::string print(const Loaded& loaded);

}  // namespace espalier::node

// SPDX-License-Identifier: Apache-2.0
// The configuration of a memory node, from what flags, variables and a file say, in this order of
// precedence, and from defaults. It is all good, or every problem is told at once.
//
// The world comes in as values and one function, so that tests and fuzzers need no files.
//
// Which maps to make: those that --map names, else those of ESPALIER_MAPS, else all [[map]] of the
// file, else one called "default". A map that is named and also stands in the file has the options
// that it has there.
//
// Which peers it has: those of --peer, else those of ESPALIER_PEERS, else those of [peers].
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

/// What loading sees of the machine.
struct World {
  /// All variables. Of two with the same name the first counts, as for getenv().
  std::vector<std::pair<std::string, std::string>> environment;
  /// The content of a file. Errors: not_found if there is none; unsupported: it is a FIFO; others
  /// as they come.
  std::function<Result<std::string>(const std::string& path)> read_file;
  std::uint64_t user_id = 0;
  std::uint64_t memory_bytes = 0;  ///< of the machine, or of the control group; 0: not known
};

/// Where a user's node listens, if that is not root and has no folder of its own from the system.
/// All users may write /tmp, so the node has to make sure that the folder is this user's alone.
[[nodiscard]] std::string own_folder(std::uint64_t user_id);

/// One flag of the command line, without interpretation. The key is a setting's ("node.cores"),
/// "map" or "peer", which may come several times, or "config".
struct FlagValue {
  std::string key;
  std::string text;
};

/// Something wrong: where ("environment ESPALIER_NODE_CORES"), what, and what to do about it.
struct Problem {
  std::string where;
  std::string what;
  std::string hint;
};

/// "where: what; hint", for one line on a terminal.
[[nodiscard]] std::string describe(const Problem& problem);

/// A good configuration and, for each value of it, where it came from: "default",
/// "flag --node-cores", "environment ESPALIER_NODE_CORES", "file /etc/espalier/espalier.toml:12".
struct Loaded {
  Config config;
  std::vector<std::string> origins;                   ///< one for each of settings()
  std::vector<std::vector<std::string>> map_origins;  ///< for each map, each of map_settings()
  std::vector<std::string> peer_origins;              ///< for each peer
  std::string memory_share;  ///< memory.limit as it was given, if that is a percentage; else empty
};

/// Loads the configuration.
/// Errors: at least one problem; every value that is wrong is among them, also where another one
/// takes precedence. Throws only what `read_file` throws, and std::bad_alloc.
[[nodiscard]] std::expected<Loaded, std::vector<Problem>> load(const World& world,
                                                               std::span<const FlagValue> flags);

/// The configuration as a TOML file, with the origins as comments. load() of this file alone, on
/// the same machine, gives the same configuration.
[[nodiscard]] std::string print(const Loaded& loaded);

}  // namespace espalier::node

// SPDX-License-Identifier: Apache-2.0
// Options that several commands share, so that they read, mean and default the same everywhere.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmdline/parse.hpp"
#include "cmdline/text_codec.hpp"
#include "tools/environment.hpp"
#include "tools/loader.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace espalier::tools {

using cmdline::Action;
using cmdline::Encoding;

/// Adds --file, --format and the other options of input; and --at and --map, for data on a node.
/// `positional`: FILE... may be given without --file.
void add_source_options(CLI::App& command, SourceOptions& options, bool positional);
/// Adds --one-sided and --in-network, for commands that only read.
void add_access_options(CLI::App& command, Access& access);
/// Adds --datagram, for a command with these.
void add_datagram_option(CLI::App& command, Access& access);
/// Adds --node-bytes, --log-bytes, --no-versions. Returns them.
std::vector<const CLI::Option*> add_map_options(CLI::App& command, MapOptions& options);
/// Adds --kind, map or hash. Returns it.
const CLI::Option* add_kind_option(CLI::App& command, bool& hashed);
/// Adds --durability, for a new object.
void add_durability_option(CLI::App& command, std::optional<Durability>& durability);
/// Adds --partitions of a hash map. Returns it.
const CLI::Option* add_partitions_option(CLI::App& command, HashMapOptions& options);
/// Adds the options of a new map of this process, of either kind.
void add_making_options(CLI::App& command, SourceOptions& options);
/// Fails if one of the options is for the other kind of map.
[[nodiscard]] Outcome<void> check_kind(const std::vector<const CLI::Option*>& making, bool hashed);
/// Adds --at, the address of a node.
void add_address_option(CLI::App& command, std::optional<std::string>& at);
/// Adds --secret-file and --node-user to each command below `app` that connects to nodes.
void add_identity_options(CLI::App& app, std::optional<std::string>& secret_file,
                          std::optional<std::uint32_t>& node_user);
/// Adds an option whose value is the name of an object: not empty.
CLI::Option* add_name_option(CLI::App& command, const std::string& option,
                             const std::string& description, std::optional<std::string>& name);
/// Adds --map, the name of a map on a node.
void add_map_name_option(CLI::App& command, std::optional<std::string>& name);
/// Adds an option that takes a size such as 512M.
CLI::Option* add_size_option(CLI::App& command, const std::string& name,
                             const std::string& description, std::uint64_t& into);
/// Adds --encoding.
void add_encoding_option(CLI::App& command, std::optional<Encoding>& encoding);
/// Adds --json.
void add_json_option(CLI::App& command, bool& json);

/// The bytes of an operand: verbatim, unless --encoding says otherwise.
[[nodiscard]] Outcome<std::string> operand_bytes(const std::string& operand,
                                                 std::optional<Encoding> encoding,
                                                 std::string_view what);

/// How to print bytes: as --encoding says; else `escaped` on a terminal and `elsewhere` off it.
[[nodiscard]] Encoding output_encoding(const Environment& environment,
                                       std::optional<Encoding> encoding, Encoding elsewhere);

/// The action that runs `command` and prints its failure, if any.
[[nodiscard]] Action reporting(Environment& environment, std::function<Outcome<int>()> command);

}  // namespace espalier::tools

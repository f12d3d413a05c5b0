// SPDX-License-Identifier: Apache-2.0
#include "tools/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "base/byte_size.hpp"
#include "base/peer_user.hpp"
#include "cmdline/number_option.hpp"

namespace espalier::tools {
namespace {

/// An option whose text `accept` turns into something; what it says against it is a usage error.
CLI::Option* add_text_option(
    CLI::App& command, const std::string& names, const std::string& type,
    const std::string& description,
    const std::function<std::optional<std::string>(const std::string&)>& accept) {
  const std::function<void(const std::string&)> checked = [names, accept](const std::string& text) {
    if (const auto wrong = accept(text)) {
      throw CLI::ValidationError(names, fmt::format("'{}' {}", text, *wrong));
    }
  };
  return command.add_option_function<std::string>(names, checked, description)->type_name(type);
}

/// An option that takes one of a few words.
template <class T>
CLI::Option* add_choice(CLI::App& command, const std::string& names,
                        std::vector<std::pair<std::string, std::optional<T>>> choices,
                        std::optional<T>& into, const std::string& description) {
  std::string words;
  for (const auto& [word, value] : choices) words += (words.empty() ? "" : "|") + word;
  const auto accept = [&into, choices = std::move(choices),
                       words](const std::string& text) -> std::optional<std::string> {
    for (const auto& [word, value] : choices) {
      if (word != text) continue;
      into = value;
      return std::nullopt;
    }
    return "is not one of " + words;
  };
  return add_text_option(command, names, words, description, accept);
}

void add_column_options(CLI::App& command, SourceOptions& options) {
  ReaderOptions& reader = options.reader;
  options.reading.push_back(cmdline::add_number(command, "--key-column", reader.key_column,
                                                "csv, tsv: column of the key, from 1", {.min = 1})
                                ->group("Data"));
  options.reading.push_back(
      cmdline::add_number_function<std::uint32_t>(
          command, "--value-column",
          [&reader](std::uint32_t column) { reader.value_column = column; },
          "csv, tsv: column of the value (default: the one after the key's, if there is one)",
          {.min = 1})
          ->group("Data"));
  options.reading.push_back(
      command.add_flag("--header", reader.header, "The first line names the columns")
          ->group("Data"));
}

/// What is said about bad lines, and how much memory a map of them may take.
void add_limit_options(CLI::App& command, SourceOptions& options) {
  options.reading.push_back(
      command.add_flag("--strict", options.strict, "Exit with 1 if any line is bad")
          ->group("Data"));
  options.reading.push_back(cmdline::add_number_function<std::uint64_t>(
                                command, "--max-errors",
                                [&options](std::uint64_t count) { options.bad_lines_max = count; },
                                "Give up when more than N lines are bad (default: never)")
                                ->group("Data"));
  CLI::Option* const memory =
      add_size_option(command, "--memory-max",
                      "Memory that the map may use, such as 512M (default: most of the machine's)",
                      options.memory_bytes_max);
  options.reading.push_back(memory->group("Data"));
  options.making.push_back(memory);
}

}  // namespace

void add_source_options(CLI::App& command, SourceOptions& options, bool positional) {
  const std::function<void(const std::vector<std::string>&)> take_files =
      [&options](const std::vector<std::string>& files) {
        options.files.insert(options.files.end(), files.begin(), files.end());
      };
  if (positional) {
    command.add_option_function<std::vector<std::string>>("FILE", take_files,
                                                          "Files to read; - is standard input");
  }
  command
      .add_option_function<std::vector<std::string>>("-f,--file", take_files,
                                                     "File to read; - is standard input")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->group("Data");
  options.reading.push_back(
      add_choice<Format>(command, "--format",
                         {{"auto", std::nullopt},
                          {"lines", Format::lines},
                          {"csv", Format::csv},
                          {"tsv", Format::tsv},
                          {"json-lines", Format::json_lines}},
                         options.format, "Format (default: from the file's name, then its content)")
          ->group("Data"));
  options.reading.push_back(
      add_text_option(command, "--separator", "CHAR",
                      "csv: what stands between fields (default: ,)",
                      [&options](const std::string& text) -> std::optional<std::string> {
                        if (text.size() != 1 || std::string_view("\"\r\n").contains(text[0])) {
                          return "is not one byte other than a quote or an end of line";
                        }
                        options.reader.separator = text[0];
                        return std::nullopt;
                      })
          ->group("Data"));
  add_column_options(command, options);
  options.reading.push_back(command
                                .add_flag("--number-lines", options.reader.number_lines,
                                          "lines: the value of a key is the number of its line")
                                ->group("Data"));
  add_limit_options(command, options);
  add_address_option(command, options.at);
  add_map_name_option(command, options.map_name);
}

void add_access_options(CLI::App& command, Access& access) {
  const auto add = [&](const std::string& name, Access of, const std::string& what) {
    return command.add_flag_callback(name, [&access, of] { access = of; }, what)->group("Data");
  };
  CLI::Option* const one_sided =
      add("--one-sided", Access::one_sided,
          "Read the node's memory instead of asking the node (shm: and roce: addresses)");
  add("--in-network", Access::in_network,
      "The same by READs that carry the key, for switches on the way (roce: addresses)")
      ->excludes(one_sided);
}

// Not by excludes(): the help names several of an option in the order of their addresses. What is
// defined before has been called by then.
void add_datagram_option(CLI::App& command, Access& access) {
  command
      .add_flag_callback(
          "--datagram",
          [&access] {
            if (access == Access::one_sided) throw CLI::ExcludesError("--datagram", "--one-sided");
            if (access == Access::in_network) {
              throw CLI::ExcludesError("--datagram", "--in-network");
            }
            access = Access::datagram;
          },
          "Ask the node by a datagram of UDP for each key (nodes with node.datagrams)")
      ->group("Data");
}

void add_address_option(CLI::App& command, std::optional<std::string>& at) {
  add_text_option(command, "--at", "ADDRESS",
                  "Address of the node, as unix:PATH, or chain://... of a chain (default: "
                  "ESPALIER_AT)",
                  [&at](const std::string& text) -> std::optional<std::string> {
                    at = text;
                    return std::nullopt;
                  })
      ->group("Node");
}

// Which are those that take the address of one.
void add_identity_options(CLI::App& app, std::optional<std::string>& secret_file,
                          std::optional<std::uint32_t>& node_user) {
  for (CLI::App* const command : app.get_subcommands({})) {
    add_identity_options(*command, secret_file, node_user);
  }
  if (app.get_option_no_throw("--at") == nullptr && app.get_option_no_throw("--shard") == nullptr) {
    return;
  }
  add_text_option(app, "--secret-file", "PATH",
                  "File with the name and secret by which to come to a node (default: "
                  "ESPALIER_SECRET_FILE)",
                  [&secret_file](const std::string& text) -> std::optional<std::string> {
                    if (text.empty()) return "is no path";
                    secret_file = text;
                    return std::nullopt;
                  })
      ->group("Node");
  add_text_option(app, "--node-user", "USER",
                  "User as whom a node of this machine runs, where that is neither this one nor "
                  "root nor who owns the socket's folder (default: ESPALIER_NODE_USER)",
                  [&node_user](const std::string& text) -> std::optional<std::string> {
                    node_user = base::user_named(text);
                    if (!node_user) return "is no user of this machine, by name or number";
                    return std::nullopt;
                  })
      ->group("Node");
}

CLI::Option* add_name_option(CLI::App& command, const std::string& option,
                             const std::string& description, std::optional<std::string>& name) {
  return add_text_option(command, option, "NAME", description,
                         [&name](const std::string& text) -> std::optional<std::string> {
                           if (text.empty()) return "is no name";
                           name = text;
                           return std::nullopt;
                         });
}

void add_map_name_option(CLI::App& command, std::optional<std::string>& name) {
  add_name_option(command, "--map", "Map of the node (default: default)", name)->group("Node");
}

std::vector<const CLI::Option*> add_map_options(CLI::App& command, MapOptions& options) {
  return {
      cmdline::add_number(command, "--node-bytes", options.node_bytes, "Size of a tree node")
          ->type_name("BYTES")
          ->group("Map"),
      cmdline::add_number(command, "--log-bytes", options.log_bytes, "Size of a leaf's log block")
          ->type_name("BYTES")
          ->group("Map"),
      command
          .add_flag_callback(
              "--no-versions", [&options] { options.versions = false; },
              "Keep no old versions: faster writes, no consistent scans")
          ->group("Map")};
}

const CLI::Option* add_kind_option(CLI::App& command, bool& hashed) {
  return command
      .add_option_function<std::string>(
          "--kind", [&hashed](const std::string& kind) { hashed = kind == "hash"; },
          "map: ordered, as without it; hash: a hash map, whose keys have no order")
      ->type_name("KIND")
      ->check(CLI::IsMember({"map", "hash"}).description(""));
}

void add_durability_option(CLI::App& command, std::optional<Durability>& durability) {
  command
      .add_option_function<std::string>(
          "--durability",
          [&durability](const std::string& word) {
            for (const Durability each : {Durability::none, Durability::async, Durability::sync}) {
              if (name(each) == word) durability = each;
            }
          },
          "What a crash may lose of it: none, async or sync (as the node says)")
      ->type_name("DURABILITY")
      ->check(CLI::IsMember({"none", "async", "sync"}).description(""));
}

const CLI::Option* add_partitions_option(CLI::App& command, HashMapOptions& options) {
  return cmdline::add_number(command, "--partitions", options.partitions,
                             "Of a hash map: parts of the keys that a lock each guards")
      ->type_name("COUNT")
      ->group("Map");
}

void add_making_options(CLI::App& command, SourceOptions& options) {
  options.making.push_back(add_kind_option(command, options.hashed));
  for (const CLI::Option* option : add_map_options(command, options.map)) {
    options.making.push_back(option);
  }
  options.making.push_back(add_partitions_option(command, options.hash));
}

Outcome<void> check_kind(const std::vector<const CLI::Option*>& making, bool hashed) {
  for (const CLI::Option* option : making) {
    const std::string& name = option->get_name();
    const bool of_ordered = name == "--node-bytes" || name == "--log-bytes";
    const bool of_hashed = name == "--partitions";
    if (option->count() == 0 || !(hashed ? of_ordered : of_hashed)) continue;
    return misused(
        fmt::format("{} says what {} is like", name, hashed ? "an ordered map" : "a hash map"),
        hashed ? "Leave it out." : "Leave it out, or give --kind hash.");
  }
  return {};
}

CLI::Option* add_size_option(CLI::App& command, const std::string& name,
                             const std::string& description, std::uint64_t& into) {
  return add_text_option(command, name, "SIZE", description,
                         [&into](const std::string& text) -> std::optional<std::string> {
                           const auto bytes = base::parse_bytes(text);
                           if (!bytes) return bytes.error();
                           into = *bytes;
                           return std::nullopt;
                         });
}

void add_encoding_option(CLI::App& command, std::optional<Encoding>& encoding) {
  add_choice<Encoding>(
      command, "--encoding",
      {{"raw", Encoding::raw}, {"hex", Encoding::hex}, {"escaped", Encoding::escaped}}, encoding,
      "How keys and values are written, in arguments and in the output (default: "
      "arguments raw, output escaped)");
}

void add_json_option(CLI::App& command, bool& json) {
  command.add_flag("--json", json, "Print JSON, one object per line");
}

Outcome<std::string> operand_bytes(const std::string& operand, std::optional<Encoding> encoding,
                                   std::string_view what) {
  auto bytes = decode(operand, encoding.value_or(Encoding::raw));
  if (!bytes) return misused(fmt::format("{} '{}': {}", what, operand, bytes.error()));
  return std::move(*bytes);
}

Encoding output_encoding(const Environment& environment, std::optional<Encoding> encoding,
                         Encoding elsewhere) {
  return encoding.value_or(environment.out_is_terminal ? Encoding::escaped : elsewhere);
}

Action reporting(Environment& environment, std::function<Outcome<int>()> command) {
  return [&environment, command = std::move(command)] {
    const Outcome<int> result = command();
    return result ? *result : print_failure(environment, result.error());
  };
}

}  // namespace espalier::tools

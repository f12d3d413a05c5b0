// SPDX-License-Identifier: Apache-2.0
#include "tools/switch_reach.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <utility>

#include "cmdline/text_codec.hpp"
#include "dataplane/control_line.hpp"
#include "tools/data_place.hpp"
#include "tools/fabric_link.hpp"
#include "tools/numbers.hpp"

namespace espalier::tools {

using cmdline::escaped;
using dataplane::ControlClient;
using dataplane::SwitchProgram;

std::unexpected<Failure> cannot_serve(const std::string& path, const Error& error) {
  if (error.code == Code::invalid_argument) {
    return misused(fmt::format("'{}' is no path of a socket", escaped(path)),
                   "Give one of 1 to 107 bytes.");
  }
  return cannot_listen(escaped(path), error);
}

Outcome<std::string> text_of_file(Environment& environment, const std::string& path) {
  const auto refused = [&](const Error& error) {
    return failed(fmt::format("cannot read '{}': {}", escaped(path), reason(error)));
  };
  auto source = environment.files.open(path);
  if (!source) return refused(source.error());
  std::string text;
  std::array<char, 65536> some;
  for (;;) {
    const auto count = (*source)->read(some);
    if (!count) return refused(count.error());
    if (*count == 0) return text;
    text.append(some.data(), *count);
    if (text.size() > dataplane::kControlBytesMax) {
      return failed(fmt::format("'{}' is longer than {}", escaped(path),
                                format_bytes(dataplane::kControlBytesMax)));
    }
  }
}

Outcome<ControlClient> reach_switch(const std::string& path) {
  auto client = ControlClient::connect(path);
  if (client) return std::move(*client);
  if (client.error().code == Code::invalid_argument) return cannot_serve(path, client.error());
  if (client.error().code == Code::connection_lost) {
    return failed(fmt::format("no switch answers at '{}'", escaped(path)),
                  "Start one: espalier switch run --clients PATH --node PATH --control PATH.");
  }
  return failed(fmt::format("cannot reach '{}': {}", escaped(path), reason(client.error())));
}

std::unexpected<Failure> did_not(const ControlClient& client, const std::string& path) {
  if (!client.refused().empty()) return failed("the switch refuses: " + escaped(client.refused()));
  return failed(fmt::format("the switch at '{}' is gone, or is none", escaped(path)));
}

Outcome<SwitchProgram> program_from(Environment& environment, const TablesFrom& from) {
  std::string text;
  if (from.control.empty() && from.file.empty()) {
    return misused("no tables are named", "Give FILE, or --control PATH.");
  }
  if (from.control.empty()) {
    auto read = text_of_file(environment, from.file);
    if (!read) return std::unexpected(read.error());
    text = *std::move(read);
  } else {
    auto client = reach_switch(from.control);
    if (!client) return std::unexpected(client.error());
    auto answer = client->ask("program");
    if (!answer) return did_not(*client, from.control);
    text = *std::move(answer);
  }
  auto program = SwitchProgram::parse(text);
  if (program) return *std::move(program);
  const std::string& name = from.control.empty() ? from.file : from.control;
  return failed(fmt::format("'{}': line {}: {}", escaped(name), program.error().line,
                            program.error().reason));
}

void add_tables_from(CLI::App& command, TablesFrom& into) {
  CLI::Option* const file =
      command
          .add_option_function<std::string>(
              "FILE", [&into](const std::string& text) { into.file = text; },
              "What a switch would run with, as docs/formats/index_tables.md writes it")
          ->type_name("");
  file->excludes(add_path(command, "--control",
                          "The socket of a switch that is asked for its tables", into.control));
}

CLI::Option* add_path(CLI::App& command, const std::string& name, const std::string& what,
                      std::string& into) {
  return command
      .add_option_function<std::string>(
          name, [&into](const std::string& text) { into = text; }, what)
      ->type_name("PATH");
}

void add_paths(CLI::App& command, const std::string& name, const std::string& what,
               std::vector<std::string>& into) {
  command
      .add_option_function<std::vector<std::string>>(
          name, [&into](const std::vector<std::string>& all) { into = all; }, what)
      ->type_name("PATH")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->required();
}

void add_control(CLI::App& command, std::string& into) {
  add_path(command, "--control", "The socket at which a switch takes tables and is asked", into)
      ->required();
}

}  // namespace espalier::tools

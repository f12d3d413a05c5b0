// SPDX-License-Identifier: Apache-2.0
// The `espalier` command: real files, real streams, and the one place that catches exceptions.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/machine_memory.hpp"
#include "bench/commands.hpp"
#include "fabric/address.hpp"
#include "tools/node_process.hpp"
#include "tools/os_files.hpp"
#include "tools/run.hpp"
#include "tools/standard_output.hpp"
#include "tools/stop_signals.hpp"
#include "tools/terminal_screen.hpp"

namespace espalier::tools {
namespace {

/// https://no-color.org: any value but the empty one asks for no colour.
bool colour_wanted(bool terminal) {
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const terminal_type = std::getenv("TERM");
  return terminal && (no_color == nullptr || *no_color == '\0') && terminal_type != nullptr &&
         std::string_view(terminal_type) != "dumb";
}

std::vector<std::pair<std::string, std::string>> variables() {
  std::vector<std::pair<std::string, std::string>> result;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view entry(*at);
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;  // nobody can ask for it
    result.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return result;
}

int run_on_this_machine(const std::vector<std::string>& arguments) {
  // A reader that goes away is met as a failing write (EPIPE), whatever the parent process has set.
  std::signal(SIGPIPE, SIG_IGN);
  DescriptorBuffer out_buffer(STDOUT_FILENO);
  std::ostream out(&out_buffer);
  OsFiles files;
  const auto input = borrow_descriptor(STDIN_FILENO);
  const bool err_is_terminal = ::isatty(STDERR_FILENO) == 1;
  Environment environment{
      .input = *input,
      .out = out,
      .err = std::cerr,
      .files = files,
      .out_is_terminal = ::isatty(STDOUT_FILENO) == 1,
      .err_is_terminal = err_is_terminal,
      .colour = colour_wanted(err_is_terminal),
      .now_ns =
          [] {
            const auto since = std::chrono::steady_clock::now().time_since_epoch();
            return static_cast<std::uint64_t>(
                std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
          },
      .memory_bytes_max = 0,
      .variables = variables(),
      .user_id = ::geteuid(),
      .machine_bytes = base::machine_memory_bytes(),
      .connect = [](const std::string& address) { return Store::connect(address); },
      .serve = run_node,
      .listen_on_fabric = fabric::open_for_listening,
      .reach_on_fabric = fabric::open_for_connecting,
      .notice_stop = [] { return std::make_unique<StopSignals>(); },
      .open_screen = [&out] { return open_terminal_screen(out); },
      .pause = [](std::uint64_t ns) { std::this_thread::sleep_for(std::chrono::nanoseconds(ns)); },
  };
  const bench::Output bench_output{out, std::cerr, err_is_terminal};
  const Mount bench_commands = [&](CLI::App& app, Environment&, Action& chosen) {
    bench::add_bench_commands(app, bench_output, chosen);
  };
  const int exit_code = run(arguments, environment, std::span(&bench_commands, 1));
  out.flush();
  const int error_number = out_buffer.error_number();
  if (error_number == 0 || error_number == EPIPE) return exit_code;
  return print_failure(
      environment,
      {kFailed, "cannot write to standard output: " + std::generic_category().message(error_number),
       ""});
}

}  // namespace
}  // namespace espalier::tools

int main(int argc, char** argv) {
  try {
    return espalier::tools::run_on_this_machine(
        std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
  } catch (const std::exception& error) {
    std::cerr << "espalier: error: " << error.what() << '\n';
    return espalier::tools::kFailed;
  }
}

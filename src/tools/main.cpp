// SPDX-License-Identifier: Apache-2.0
// The `espalier` command: real files, and the machine that it runs on.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/machine_memory.hpp"
#include "cmdline/process.hpp"
#include "fabric/address.hpp"
#include "tools/bench_program.hpp"
#include "tools/node_process.hpp"
#include "tools/os_files.hpp"
#include "tools/run.hpp"
#include "tools/stop_signals.hpp"
#include "tools/terminal_screen.hpp"

namespace espalier::tools {
namespace {

std::vector<std::pair<std::string, std::string>> variables() {
  std::vector<std::pair<std::string, std::string>> result;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view entry(*at);
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;  // not a variable
    result.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return result;
}

int run_on_this_machine(const std::vector<std::string>& arguments, std::ostream& out,
                        const cmdline::Messages& messages) {
  OsFiles files;
  const auto input = borrow_descriptor(STDIN_FILENO);
  Environment environment{
      .input = *input,
      .out = out,
      .err = messages.err,
      .files = files,
      .out_is_terminal = ::isatty(STDOUT_FILENO) == 1,
      .err_is_terminal = cmdline::err_is_terminal(),
      .colour = messages.colour,
      .now_ns =
          [] {
            const auto since = std::chrono::steady_clock::now().time_since_epoch();
            return static_cast<std::uint64_t>(
                std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
          },
      .memory_bytes_max = 0,
      .variables = variables(),
      .user_id = ::geteuid(),
      .machine_bytes = base::usable_memory_bytes(),
      .connect = [](const std::string& address,
                    const StoreOptions& options) { return Store::connect(address, options); },
      .serve = run_node,
      .open_data_folder = node::DataReader::open,
      .start_bench = start_bench_program,
      .listen_on_fabric = fabric::open_for_listening,
      .reach_on_fabric = fabric::open_for_connecting,
      .notice_stop = [] { return std::make_unique<StopSignals>(); },
      .open_screen = [&out] { return open_terminal_screen(out); },
      .pause = [](std::uint64_t ns) { std::this_thread::sleep_for(std::chrono::nanoseconds(ns)); },
  };
  return run(arguments, environment);
}

}  // namespace
}  // namespace espalier::tools

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return espalier::cmdline::run_process(
      "espalier", [&](std::ostream& out, const espalier::cmdline::Messages& messages) {
        return espalier::tools::run_on_this_machine(arguments, out, messages);
      });
}

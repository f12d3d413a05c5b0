// SPDX-License-Identifier: Apache-2.0
// For tests: the whole command on files in memory, with its output caught.
#pragma once

#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "fabric/address.hpp"
#include "tools/run.hpp"
#include "tools/testing/memory_files.hpp"

namespace espalier::tools {

/// Runs commands and keeps the output of the last one.
class Tool {
 public:
  MemoryFiles files;
  std::string input;  ///< standard input of the next command
  std::vector<std::pair<std::string, std::string>> variables;
  /// Connects to nodes; empty: there are none.
  std::function<Result<Store>(const std::string& address, const StoreOptions& options)> connect;
  /// Runs nodes; empty: none can be started.
  std::function<Outcome<int>(Environment&, const node::Loaded&, const LoadAgain&)> serve;
  /// Runs the benchmark program; empty: there is none.
  std::function<Failure(std::vector<std::string> arguments)> start_bench;
  bool has_data = false;    ///< data folders can be opened, those of this machine
  bool has_fabric = false;  ///< ends of the fabric can be opened, those of this machine
  /// Source of requests to stop; empty: none.
  std::function<std::unique_ptr<StopRequest>()> notice_stop;
  /// The terminal; empty: there is none.
  std::function<std::unique_ptr<Screen>()> open_screen;
  std::vector<std::uint64_t> pauses_ns;  ///< for which a command waited
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool colour = false;
  std::uint64_t tick_ns = 1'000'000;  ///< how far the clock goes at each reading
  std::function<void()> at_tick;      ///< a concurrent action of others; empty: none

  int run(const std::vector<std::string>& arguments) {
    constexpr std::uint64_t kMemoryBytes = std::uint64_t{64} << 20;
    MemorySource source(input, files.piece_bytes);
    out_.str("");
    err_.str("");
    Environment environment{.input = source,
                            .out = out_,
                            .err = err_,
                            .files = files,
                            .out_is_terminal = out_is_terminal,
                            .err_is_terminal = err_is_terminal,
                            .colour = colour,
                            .now_ns =
                                [this] {
                                  if (at_tick) at_tick();
                                  return clock_ns_ += tick_ns;
                                },
                            .memory_bytes_max = kMemoryBytes,
                            .variables = variables,
                            .user_id = 1000,
                            .machine_bytes = std::uint64_t{8} << 30};
    if (connect) environment.connect = connect;
    if (serve) environment.serve = serve;
    if (start_bench) environment.start_bench = start_bench;
    if (has_data) environment.open_data_folder = node::DataReader::open;
    if (has_fabric) {
      environment.listen_on_fabric = fabric::open_for_listening;
      environment.reach_on_fabric = fabric::open_for_connecting;
    }
    if (notice_stop) environment.notice_stop = notice_stop;
    if (open_screen) environment.open_screen = open_screen;
    environment.pause = [this](std::uint64_t ns) { pauses_ns.push_back(ns); };
    return tools::run(arguments, environment);
  }
  [[nodiscard]] std::string out() const { return out_.str(); }
  [[nodiscard]] std::string err() const { return err_.str(); }

 private:
  std::ostringstream out_;
  std::ostringstream err_;
  std::uint64_t clock_ns_ = 0;
};

}  // namespace espalier::tools

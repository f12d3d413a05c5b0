// SPDX-License-Identifier: Apache-2.0
// The environment of one run of the command: its access to the outside world, and its error output.
//
// A command gets an Environment and returns an exit code; it opens, prints and measures through the
// Environment only. So tests and fuzzers run commands as plain functions (tools/run.hpp). Nodes and
// the fabric are part of the environment: without a function here, they cannot be reached or
// started.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cmdline/failure.hpp"
#include "espalier/map.hpp"
#include "fabric/address.hpp"
#include "node/config_load.hpp"
#include "node/data_reader.hpp"
#include "tools/files.hpp"
#include "tools/screen.hpp"
#include "tools/stop_request.hpp"

namespace espalier::tools {

using cmdline::failed;
using cmdline::Failure;
using cmdline::kFailed;
using cmdline::kOk;
using cmdline::kUsage;
using cmdline::misused;
using cmdline::Outcome;

/// Reloads the configuration of a node: the same flags and variables, and the current file.
using LoadAgain = std::function<std::expected<node::Loaded, std::vector<node::Problem>>()>;

using OpenedData = std::expected<std::unique_ptr<node::DataReader>, node::DataMistake>;

struct Environment {
  ByteSource& input;  ///< standard input
  std::ostream& out;
  std::ostream& err;
  Files& files;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool colour = false;                    ///< in messages on `err`
  std::function<std::uint64_t()> now_ns;  ///< a monotonic clock
  /// Default limit on the memory of a map; 0: the library's own.
  std::uint64_t memory_bytes_max = 0;
  /// All variables of the process.
  std::vector<std::pair<std::string, std::string>> variables{};
  std::uint64_t user_id = 0;
  /// Memory of the machine, or of this process's control group if that is less; 0: unknown.
  std::uint64_t machine_bytes = 0;
  /// The value of --secret-file; nullopt: not given.
  std::optional<std::string> secret_file{};
  /// The user of --node-user; nullopt: not given.
  std::optional<std::uint32_t> node_user{};
  /// Connects to the node at an address, as Store::connect.
  std::function<Result<Store>(const std::string& address, const StoreOptions& options)> connect =
      refuse_to_connect;
  /// Runs a node until it is asked to stop; returns the exit code.
  std::function<Outcome<int>(Environment&, const node::Loaded&, const LoadAgain&)> serve =
      refuse_to_serve;

  /// Opens the data folder of a stopped node, as node::DataReader::open.
  std::function<OpenedData(const std::string& path)> open_data_folder = refuse_to_open_data;

  /// Executes the benchmark program with these arguments; returns only on failure.
  std::function<Failure(std::vector<std::string> arguments)> start_bench = refuse_to_start_bench;

  /// Opens a listening fabric endpoint, as fabric::open_for_listening.
  std::function<Result<fabric::Listening>(const fabric::FabricAddress&,
                                          std::shared_ptr<fabric::RegionTable>)>
      listen_on_fabric = refuse_to_listen;
  /// Opens a connecting fabric endpoint, as fabric::open_for_connecting.
  std::function<Result<fabric::Connecting>(const fabric::FabricAddress&,
                                           std::shared_ptr<fabric::RegionTable>,
                                           const std::optional<fabric::roce::IpAddress>&)>
      reach_on_fabric = refuse_to_reach;
  /// Watches for requests to stop the command from now on; null: none can come.
  std::function<std::unique_ptr<StopRequest>()> notice_stop = [] { return nullptr; };

  /// Takes the whole terminal; null: there is none.
  std::function<std::unique_ptr<Screen>()> open_screen = [] { return nullptr; };
  /// Waits so long.
  std::function<void(std::uint64_t ns)> pause = [](std::uint64_t) {};

  static Result<Store> refuse_to_connect(const std::string& address, const StoreOptions& options);
  static Outcome<int> refuse_to_serve(Environment& environment, const node::Loaded& loaded,
                                      const LoadAgain& load_again);
  static OpenedData refuse_to_open_data(const std::string& path);
  static Failure refuse_to_start_bench(const std::vector<std::string>& arguments);
  static Result<fabric::Listening> refuse_to_listen(const fabric::FabricAddress& address,
                                                    std::shared_ptr<fabric::RegionTable> regions);
  static Result<fabric::Connecting> refuse_to_reach(
      const fabric::FabricAddress& address, std::shared_ptr<fabric::RegionTable> regions,
      const std::optional<fabric::roce::IpAddress>& local);
};

/// The value of a variable; nullopt if it is unset or empty.
[[nodiscard]] std::optional<std::string> variable(const Environment& environment,
                                                  std::string_view name);

/// The system's message for an errno in an Error; the library's for other errors.
[[nodiscard]] std::string reason(const Error& error);

/// How messages of this run are printed.
[[nodiscard]] cmdline::Messages messages(Environment& environment);

/// Prints `failure` on `err`, with its hint on a second line, and returns its exit code.
int print_failure(Environment& environment, const Failure& failure);

/// Prints one line on `err` that begins with the program's name and a coloured label.
void print_note(Environment& environment, std::string_view label, std::string_view text);

}  // namespace espalier::tools

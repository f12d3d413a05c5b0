// SPDX-License-Identifier: Apache-2.0
// What one run of the command sees of the world, and how it tells what went wrong.
//
// A command gets an Environment and returns an exit code; it opens, prints and measures through the
// Environment only. So tests and fuzzers run commands as plain functions (tools/run.hpp).
// Nodes and the fabric are part of the world: what is not given here cannot be reached or started.
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

#include "espalier/map.hpp"
#include "fabric/address.hpp"
#include "node/config_load.hpp"
#include "tools/files.hpp"
#include "tools/screen.hpp"
#include "tools/stop_request.hpp"

namespace espalier::tools {

/// Exit codes, the same for all commands.
inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;  ///< not found, bad data, an error of the world
inline constexpr int kUsage = 2;   ///< the command line itself is wrong

/// Why a command cannot go on, in words for the person at the keyboard.
struct Failure {
  int exit_code = kFailed;
  std::string what;  ///< what cannot be done, and why
  std::string hint;  ///< what to do about it; may be empty
};

template <class T>
using Outcome = std::expected<T, Failure>;

struct Environment {
  ByteSource& input;  ///< standard input
  std::ostream& out;
  std::ostream& err;
  Files& files;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool colour = false;                    ///< of messages on `err`
  std::function<std::uint64_t()> now_ns;  ///< a clock that only goes forward
  /// Limit on the memory of a map unless the command line says otherwise; 0: the library's own.
  std::uint64_t memory_bytes_max = 0;
  /// All variables of the process.
  std::vector<std::pair<std::string, std::string>> variables{};
  std::uint64_t user_id = 0;
  std::uint64_t machine_bytes = 0;  ///< memory of the machine; 0: not known
  /// Connects to the node at an address, as Store::connect.
  std::function<Result<Store>(const std::string& address)> connect = refuse_to_connect;
  /// Runs a node until it is told to stop; returns the exit code.
  std::function<Outcome<int>(Environment&, const node::Loaded&)> serve = refuse_to_serve;

  /// Opens an end of the fabric that listens, as fabric::open_for_listening.
  std::function<Result<fabric::Listening>(const fabric::FabricAddress&,
                                          std::shared_ptr<fabric::RegionTable>)>
      listen_on_fabric = refuse_to_listen;
  /// Opens an end of the fabric that connects, as fabric::open_for_connecting.
  std::function<Result<fabric::Connecting>(const fabric::FabricAddress&,
                                           std::shared_ptr<fabric::RegionTable>,
                                           const std::optional<fabric::roce::IpAddress>&)>
      reach_on_fabric = refuse_to_reach;
  /// Notices from now on when the command is asked to stop; null: nobody can ask.
  std::function<std::unique_ptr<StopRequest>()> notice_stop = [] { return nullptr; };

  /// Takes the whole terminal; null: there is none.
  std::function<std::unique_ptr<Screen>()> open_screen = [] { return nullptr; };
  /// Waits so long.
  std::function<void(std::uint64_t ns)> pause = [](std::uint64_t) {};

  static Result<Store> refuse_to_connect(const std::string& address);
  static Outcome<int> refuse_to_serve(Environment& environment, const node::Loaded& loaded);
  static Result<fabric::Listening> refuse_to_listen(const fabric::FabricAddress& address,
                                                    std::shared_ptr<fabric::RegionTable> regions);
  static Result<fabric::Connecting> refuse_to_reach(
      const fabric::FabricAddress& address, std::shared_ptr<fabric::RegionTable> regions,
      const std::optional<fabric::roce::IpAddress>& local);
};

/// A Failure of the data or the world.
[[nodiscard]] std::unexpected<Failure> failed(std::string what, std::string hint = "");
/// A Failure of the command line.
[[nodiscard]] std::unexpected<Failure> misused(std::string what, std::string hint = "");

/// The value of a variable; nothing if there is none, or an empty one.
[[nodiscard]] std::optional<std::string> variable(const Environment& environment,
                                                  std::string_view name);

/// The system's words for an errno that an Error carries; the library's for other errors.
[[nodiscard]] std::string reason(const Error& error);

/// Prints `failure` on `err`, with its hint on a second line, and returns its exit code.
int print_failure(Environment& environment, const Failure& failure);

/// Prints one line on `err` that begins with the program's name and a coloured label.
void print_note(Environment& environment, std::string_view label, std::string_view text);

}  // namespace espalier::tools

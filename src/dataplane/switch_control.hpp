// SPDX-License-Identifier: Apache-2.0
// How a switch is told what to run with, and says what it does: over a UNIX socket, by a line for
// each request, and so many bytes behind it where the line says so.
//
//   install BYTES   a program (switch_program.hpp) in place of the one that there is
//   change BYTES    changes of entries, all of them at once
//   program         what it runs with
//   status          a line "name value" for each number
//
//   ok BYTES        the answer follows
//   error BYTES     what was wrong, in words; nothing was changed
//
// A connection asks as often as it likes. Requests are answered one after the other, and who does
// not bring one to its end within seconds is let go. The socket is its user's alone.
//
// Thread: one that serves; stop() any.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "dataplane/control_stream.hpp"
#include "dataplane/installed_function.hpp"
#include "dataplane/switch_program.hpp"
#include "fabric/shm/listening_socket.hpp"

namespace espalier::dataplane {

/// What a request may bring: some millions of entries.
inline constexpr std::uint64_t kControlBytesMax = std::uint64_t{64} << 20;
/// For a request, and for its answer.
inline constexpr std::uint64_t kControlLongestNs = 10'000'000'000;

/// Does requests, without a socket, one after the other. Thread: any.
class SwitchControl {
 public:
  /// Adds lines "name value" of what the switch counts.
  using AddStatus = std::function<void(std::string& text)>;

  /// The function outlives it.
  SwitchControl(InstalledFunction& function, AddStatus add_status)
      : function_(function), add_status_(std::move(add_status)) {}

  using Answer = std::expected<std::string, std::string>;  // else what was wrong
  /// Does the request of a word, with what belongs to it.
  Answer ask(std::string_view word, std::string_view body);

 private:
  Answer install(std::string_view text);
  Answer change(std::string_view text);
  [[nodiscard]] std::string status() const;

  std::mutex mutex_;  // of all below
  InstalledFunction& function_;
  const AddStatus add_status_;
  SwitchProgram program_;
  std::uint64_t installed_ = 0;
  std::uint64_t changed_ = 0;  // entries
};

/// Serves a control at a socket.
class ControlServer {
 public:
  /// Errors: as ListeningSocket::open.
  static Result<std::unique_ptr<ControlServer>> open(std::string_view path, SwitchControl& control);
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  /// Until stop().
  void run();
  void stop();

 private:
  ControlServer(fabric::shm::ListeningSocket listening, memory::Descriptor wake,
                SwitchControl& control)
      : listening_(std::move(listening)), wake_(std::move(wake)), control_(control) {}
  [[nodiscard]] bool serve(ControlStream& stream);

  fabric::shm::ListeningSocket listening_;
  memory::Descriptor wake_;
  SwitchControl& control_;
};

/// A client of one. Thread: one at a time.
class ControlClient {
 public:
  /// Errors: invalid_argument (no path of a socket), connection_lost (no switch serves there),
  /// system.
  static Result<ControlClient> connect(std::string_view path);

  /// Asks by a word of the above, with what belongs to it. What was wrong comes as `refused`.
  /// Errors: connection_lost (the switch is gone, or answers nothing for kControlLongestNs, or
  /// nonsense).
  Result<std::string> ask(std::string_view word, std::string_view body = {});
  /// What was wrong with the last request; empty if nothing was.
  [[nodiscard]] const std::string& refused() const { return refused_; }

 private:
  explicit ControlClient(memory::Descriptor socket)
      : socket_(std::move(socket)), stream_(std::make_unique<ControlStream>(socket_.number())) {}

  memory::Descriptor socket_;
  std::unique_ptr<ControlStream> stream_;
  std::string refused_;
};

}  // namespace espalier::dataplane

// SPDX-License-Identifier: Apache-2.0
// The switch's end of a control connection: non-blocking, with one request at a time.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "dataplane/control_line.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::dataplane {

class ControlPeer {
 public:
  /// `socket` does not block. `number`: of the connection.
  ControlPeer(memory::Descriptor socket, std::uint64_t number, std::uint64_t now_ns)
      : socket_(std::move(socket)), number_(number), asked_ns_(now_ns) {}

  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] int socket() const { return socket_.number(); }
  /// The poll(2) events to wait for. Nothing is read while an answer is still being sent.
  [[nodiscard]] short events() const;
  /// Receives what has arrived, or sends what its peer takes. False: the peer is gone.
  [[nodiscard]] bool move(std::uint64_t now_ns);

  enum class Came : std::uint8_t {
    nothing,  // no whole request, or the last answer has not been sent
    request,
    nonsense,  // the length of the request is unknown, so the connection ends
  };
  struct Request {
    std::string_view word;
    std::string_view body;
  };
  /// The next whole request; valid until done().
  [[nodiscard]] Came next(Request& request) const;
  /// Completes the request, and sends the answer.
  void done(const Request& request, std::string answer, std::uint64_t now_ns);
  /// Sends an answer that no request asked for. Requires: the last answer has been sent.
  void say(std::string answer, std::uint64_t now_ns);

  /// The deadline of a partial request or an answer; kNever: there is none.
  [[nodiscard]] std::uint64_t due_ns() const;
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  /// When it made its last request.
  [[nodiscard]] std::uint64_t asked_ns() const { return asked_ns_; }

 private:
  [[nodiscard]] bool receive(std::uint64_t now_ns);

  memory::Descriptor socket_;
  const std::uint64_t number_;
  std::string come_;            // and not done yet
  std::string goes_;            // an answer, until it has gone
  std::size_t gone_ = 0;        // of it
  std::uint64_t begun_ns_ = 0;  // when the first byte of either was there
  std::uint64_t asked_ns_;
};

}  // namespace espalier::dataplane

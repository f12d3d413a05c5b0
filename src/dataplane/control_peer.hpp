// SPDX-License-Identifier: Apache-2.0
// A connection of a switch's control, as the switch has it: it never waits for its peer.
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
  /// What poll(2) is to wait for. Nothing is read while an answer has not gone.
  [[nodiscard]] short events() const;
  /// Takes what has come, or gives what its peer takes. False: it is gone.
  [[nodiscard]] bool move(std::uint64_t now_ns);

  enum class Came : std::uint8_t {
    nothing,  // that is whole, or the last answer has not gone
    request,
    nonsense,  // nobody knows what belongs to it, so this is the end
  };
  struct Request {
    std::string_view word;
    std::string_view body;
  };
  /// What has come whole; it is there until done().
  [[nodiscard]] Came next(Request& request) const;
  /// The request is done, and this is said to it.
  void done(const Request& request, std::string answer, std::uint64_t now_ns);
  /// Says it whatever has come. Requires: the last answer has gone.
  void say(std::string answer, std::uint64_t now_ns);

  /// Until when a request that has begun, or an answer, is to be over; kNever: there is none.
  [[nodiscard]] std::uint64_t due_ns() const;
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  /// When it asked something last.
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

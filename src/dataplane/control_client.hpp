// SPDX-License-Identifier: Apache-2.0
// The client of a switch's control (switch_control.hpp defines the requests). What it puts stays
// while it is connected and makes a request now and then.
//
// Thread: one at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "dataplane/control_line.hpp"
#include "dataplane/control_stream.hpp"
#include "espalier/error.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::dataplane {

class ControlClient {
 public:
  /// Errors: invalid_argument (no path of a socket), connection_lost (no switch serves there),
  /// not_permitted (base::check_server), system.
  static Result<ControlClient> connect(std::string_view path);

  /// Makes a request: a word, and its body. Calls `while_waiting` each 50 ms until the answer is
  /// there. Errors: invalid_argument (refused() says why); connection_lost (the switch is gone, or
  /// has not answered after `longest_ns`, or violates the protocol), and then it is of no more use.
  Result<std::string> ask(std::string_view word, std::string_view body = {},
                          const std::function<void()>& while_waiting = {},
                          std::uint64_t longest_ns = kControlLongestNs);
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

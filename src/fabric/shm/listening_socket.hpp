// SPDX-License-Identifier: Apache-2.0
// A UNIX socket in a file that others connect to; the file goes with it.
//
// Thread: one at a time.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "espalier/error.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::shm {

class ListeningSocket {
 public:
  /// Makes the file and listens. A socket that nobody answers any more is removed first; what
  /// lives, or is no socket, is not. Only this user may connect, until somebody gives the file
  /// other permissions. Errors: invalid_argument (no path of a socket), already_exists (somebody
  /// listens there), system.
  static Result<ListeningSocket> open(std::string_view path);
  ListeningSocket(ListeningSocket&& other) noexcept
      : path_(std::exchange(other.path_, {})), socket_(std::move(other.socket_)) {}
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();

  [[nodiscard]] int number() const { return socket_.number(); }

 private:
  ListeningSocket() = default;

  std::string path_;  // empty: there is no file of ours
  memory::Descriptor socket_;
};

}  // namespace espalier::fabric::shm

// SPDX-License-Identifier: Apache-2.0
// A listening UNIX socket and its file. The destructor removes the file, unless another socket lies
// at its path by then, which is not ours to remove.
//
// Thread: one at a time.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "espalier/error.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::shm {

class ListeningSocket {
 public:
  /// What goes over its connections.
  enum class Kind : std::uint8_t { messages, stream };

  /// Makes the file and listens. A stale socket without a listener is removed first; a live one, or
  /// a file that is no socket, is not. `mode`: the permissions of the file, from the first
  /// connection on; as it is, only this user may connect. Errors: invalid_argument (no path of a
  /// socket), already_exists (another process listens there), system (detail: errno).
  static Result<ListeningSocket> open(std::string_view path, mode_t mode = S_IRUSR | S_IWUSR,
                                      Kind kind = Kind::messages);
  ListeningSocket(ListeningSocket&& other) noexcept
      : path_(std::exchange(other.path_, {})),
        file_(other.file_),
        socket_(std::move(other.socket_)) {}
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket() { close(); }

  [[nodiscard]] int number() const { return socket_.number(); }
  /// Gives the file other permissions. Errors: not_found (it does not lie there any more), system
  /// (detail: errno).
  Result<void> set_mode(mode_t mode);

  /// Which file a path leads to.
  struct File {
    dev_t device;
    ino_t inode;
    friend bool operator==(const File&, const File&) = default;
  };

 private:
  ListeningSocket() = default;
  void close();

  std::string path_;          // empty: there is no file of ours
  std::optional<File> file_;  // the one that bind() made there
  memory::Descriptor socket_;
};

}  // namespace espalier::fabric::shm

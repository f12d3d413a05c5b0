// SPDX-License-Identifier: Apache-2.0
// A connection over which lines go, with bytes behind them, each in bounded time.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace espalier::dataplane {

class ControlStream {
 public:
  static constexpr std::size_t kLineBytesMax = 200;

  /// `socket` does not block and outlives this; so does `wake`, which ends each wait when it
  /// becomes readable; -1: nothing does.
  explicit ControlStream(int socket, int wake = -1) : socket_(socket), wake_(wake) {}

  static constexpr std::uint64_t kForEver = ~std::uint64_t{0};

  /// Waits for the first byte of a line for `begin_ns`, and from then on for so long. Nothing: the
  /// peer is gone, too slow, or says too much.
  std::optional<std::string> line(std::uint64_t longest_ns, std::uint64_t begin_ns = kForEver);
  /// Whether a line has come that was not taken.
  [[nodiscard]] bool has_line() const { return come_.find('\n') != std::string::npos; }
  /// So many bytes behind the last line. Nothing: as line().
  std::optional<std::string> bytes(std::uint64_t count, std::uint64_t longest_ns);
  /// False: as line().
  bool send(std::string_view text, std::uint64_t longest_ns);

 private:
  /// Takes what has come, or waits for it until then. False: as line().
  bool receive(std::uint64_t until_ns);
  [[nodiscard]] bool wait(short events, std::uint64_t until_ns) const;

  const int socket_;
  const int wake_;
  std::string come_;  // and not taken yet
};

}  // namespace espalier::dataplane

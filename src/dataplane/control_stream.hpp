// SPDX-License-Identifier: Apache-2.0
// A connection over which lines travel, followed by bytes, each with a deadline.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace espalier::dataplane {

class ControlStream {
 public:
  /// `socket` does not block and outlives this.
  explicit ControlStream(int socket) : socket_(socket) {}

  /// The deadline, and a function to call each kLookNs meanwhile; it may be empty.
  struct Wait {
    std::uint64_t until_ns;
    const std::function<void()>& meanwhile;
  };
  static constexpr std::uint64_t kLookNs = 50'000'000;

  /// Nothing: the peer is gone, too slow, or sends too much.
  std::optional<std::string> line(const Wait& wait);
  /// So many bytes behind the last line. Nothing: as line().
  std::optional<std::string> bytes(std::uint64_t count, const Wait& wait);
  /// False: as line().
  bool send(std::string_view text, const Wait& wait);

 private:
  /// Takes what has come, or waits for it. False: as line().
  bool receive(const Wait& wait);
  [[nodiscard]] bool ready(short events, const Wait& wait);
  void look(const Wait& wait);

  const int socket_;
  std::uint64_t looked_ns_ = 0;  // when `meanwhile` was called
  std::string come_;             // and not taken yet
};

}  // namespace espalier::dataplane

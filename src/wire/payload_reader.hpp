// SPDX-License-Identifier: Apache-2.0
// Reads fields and texts off the front of a payload, and remembers whether it was too short.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

namespace espalier::wire {

class PayloadReader {
 public:
  explicit PayloadReader(std::string_view payload) : left_(payload) {}

  template <class T>
  [[nodiscard]] T take() {
    T value{};
    const std::string_view bytes = text(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  [[nodiscard]] std::string_view text(std::size_t bytes) {
    if (bytes > left_.size()) {
      short_ = true;
      return {};
    }
    const std::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return taken;
  }
  [[nodiscard]] std::string_view rest() const { return left_; }
  /// Whether all that was asked for was there.
  [[nodiscard]] bool good() const { return !short_; }
  /// The same, and nothing is left.
  [[nodiscard]] bool complete() const { return !short_ && left_.empty(); }

 private:
  std::string_view left_;
  bool short_ = false;
};

}  // namespace espalier::wire

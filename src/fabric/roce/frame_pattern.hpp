// SPDX-License-Identifier: Apache-2.0
// Frames of one flow have all their headers in common but for lengths, IPv4's id and its checksum.
// So after the first of them, others are read and written by a few words.
//
// Of IPv4 alone, without a VLAN tag and without a UDP checksum, which is how we write it: of other
// frames nothing is known, and they take the long way (frame.hpp).
//
// Thread: plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace espalier::fabric::roce {

class FramePattern {
 public:
  static constexpr std::size_t kHeaderBytes = 14 + 20 + 8;

  /// Knows nothing.
  FramePattern() = default;
  /// Knows what a frame has that parse_frame() has taken, or write_frame_header() begun; nothing,
  /// if it is none of those above.
  explicit FramePattern(std::span<const std::byte> frame);
  [[nodiscard]] bool known() const { return known_; }

  struct Like {
    std::span<const std::byte> ib;
    std::uint16_t ip_id = 0;
  };
  /// The frame, if it is such a one: then parse_frame() would take it too. Any bytes may come.
  [[nodiscard]] std::optional<Like> read(std::span<const std::byte> frame) const;
  /// Writes kHeaderBytes of headers, as write_frame_header() would. Requires: known(), and at most
  /// kIbBytesMax (icrc.hpp).
  void write(std::byte* to, std::uint16_t ip_id, std::size_t ib_bytes) const;

 private:
  std::array<std::uint64_t, 5> words_{};  // of the headers, without what differs
  std::uint32_t sum_ = 0;                 // of the same of IPv4's, as its checksum is made
  bool known_ = false;
};

}  // namespace espalier::fabric::roce

// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/frame_pattern.hpp"

#include <bit>
#include <cstring>

#include "base/bytes.hpp"
#include "fabric/ethernet.hpp"

namespace espalier::fabric::roce {
namespace {

using base::load_be;
using base::store_be;
using wire::kEthernetBytes;
using wire::kIpv4Bytes;
using wire::kUdpBytes;

constexpr std::size_t kTotalAt = kEthernetBytes + 2;
constexpr std::size_t kIdAt = kEthernetBytes + 4;
constexpr std::size_t kChecksumAt = kEthernetBytes + 10;
constexpr std::size_t kUdpLengthAt = kEthernetBytes + kIpv4Bytes + 4;
constexpr std::size_t kUdpChecksumAt = kUdpLengthAt + 2;

/// What frames have in common.
constexpr std::array<std::uint64_t, 5> kCommon = [] {
  static_assert(std::endian::native == std::endian::little);
  std::array<std::uint64_t, 5> masks;
  masks.fill(~std::uint64_t{0});
  for (const std::size_t at : {kTotalAt, kIdAt, kChecksumAt, kUdpLengthAt}) {
    masks[at / 8] &= ~(std::uint64_t{0xFFFF} << (at % 8 * 8));
  }
  return masks;
}();

std::uint16_t fold(std::uint32_t sum) {
  sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(sum + (sum >> 16));
}

}  // namespace

FramePattern::FramePattern(std::span<const std::byte> frame) {
  if (frame.size() < kHeaderBytes ||
      load_be<std::uint16_t>(frame.data() + kEthernetBytes - 2) != wire::kEtherTypeIpv4 ||
      frame[kEthernetBytes] != std::byte{0x45} ||
      load_be<std::uint16_t>(frame.data() + kUdpChecksumAt) != 0) {
    return;
  }
  std::memcpy(words_.data(), frame.data(), sizeof words_);
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= kCommon[i];
  for (std::size_t at = kEthernetBytes; at < kEthernetBytes + kIpv4Bytes; at += 2) {
    if (at != kTotalAt && at != kIdAt && at != kChecksumAt)
      sum_ += load_be<std::uint16_t>(frame.data() + at);
  }
  known_ = true;
}

std::optional<FramePattern::Like> FramePattern::read(std::span<const std::byte> frame) const {
  if (!known_ || frame.size() < kHeaderBytes) return std::nullopt;
  const std::byte* const at = frame.data();
  std::array<std::uint64_t, 5> words;
  std::memcpy(words.data(), at, sizeof words);
  std::uint64_t differs = load_be<std::uint16_t>(at + kUdpChecksumAt);
  for (std::size_t i = 0; i < words.size(); ++i) differs |= (words[i] & kCommon[i]) ^ words_[i];
  if (differs != 0) return std::nullopt;
  const std::size_t total = load_be<std::uint16_t>(at + kTotalAt);
  const std::size_t udp = load_be<std::uint16_t>(at + kUdpLengthAt);
  const std::uint16_t id = load_be<std::uint16_t>(at + kIdAt);
  const std::uint32_t sum =
      sum_ + static_cast<std::uint32_t>(total) + id + load_be<std::uint16_t>(at + kChecksumAt);
  if (total > frame.size() - kEthernetBytes || udp < kUdpBytes || total != udp + kIpv4Bytes ||
      fold(sum) != 0xFFFF) {
    return std::nullopt;
  }
  return Like{frame.subspan(kHeaderBytes, udp - kUdpBytes), id};
}

void FramePattern::write(std::byte* to, std::uint16_t ip_id, std::size_t ib_bytes) const {
  const auto udp = static_cast<std::uint16_t>(kUdpBytes + ib_bytes);
  const auto total = static_cast<std::uint16_t>(kIpv4Bytes + udp);
  std::memcpy(to, words_.data(), sizeof words_);
  store_be(to + kTotalAt, total);
  store_be(to + kIdAt, ip_id);
  store_be(to + kChecksumAt, static_cast<std::uint16_t>(~fold(sum_ + total + ip_id)));
  store_be(to + kUdpLengthAt, udp);
  store_be<std::uint16_t>(to + kUdpChecksumAt, 0);
}

}  // namespace espalier::fabric::roce

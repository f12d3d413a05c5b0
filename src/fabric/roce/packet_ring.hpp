// SPDX-License-Identifier: Apache-2.0
// A ring of packets from one port to another, in memory that both reach (exchange.hpp).
//
// Packets lie contiguously, each from the beginning of a line, its length in front; so those of a
// burst are few lines in a row, which processors prefetch by themselves. A packet that does not fit
// before the end begins at the start of the ring, and a length of 0 marks that.
//
//   line  0         1         2         3         4
//         [len packet....pad][len pkt.][0 -> begin of the ring]
//
// Invariants
// I1. A line is written only after its reader is done with it: until the next call of take().
// I2. What was not published is not there for the reader.
//
// Thread: each end one at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/bytes.hpp"
#include "base/prefetch.hpp"
#include "fabric/roce/icrc.hpp"
#include "fabric/roce/port.hpp"

namespace espalier::fabric::roce {

class PacketRing {
 public:
  static constexpr std::uint64_t kLines = 1u << 14;  // 1 MiB
  static constexpr std::size_t kLengthBytes = 8;
  static constexpr std::size_t kPacketBytesMax = 4096 + 128;
  static constexpr std::size_t kBurst = 64;

  PacketRing(const PortAddress& from, const PortAddress& to)
      : from_(from),
        icrc_({from.ip, to.ip, from.udp_port, to.udp_port, true}),
        bytes_(std::make_unique_for_overwrite<std::byte[]>((kLines + 1) * base::kLineBytes)) {
    const auto at = reinterpret_cast<std::uintptr_t>(bytes_.get());
    lines_ = bytes_.get() + (base::kLineBytes - at % base::kLineBytes) % base::kLineBytes;
  }

  [[nodiscard]] const PortAddress& from() const { return from_; }

  // The writing end.

  /// Where a packet of so many bytes is to be written, or null: there is no room.
  std::byte* begin(std::size_t bytes) {
    const std::uint64_t lines = lines_of(bytes);
    const std::uint64_t to_end = kLines - written_ % kLines;
    const std::uint64_t skipped = lines <= to_end ? 0 : to_end;
    if (!has_room(skipped + lines)) return nullptr;
    if (skipped != 0) {
      base::store_plain(line(written_), std::uint32_t{0});
      written_ += skipped;
    }
    writing_bytes_ = bytes;
    return line(written_) + kLengthBytes;
  }
  /// Returns the packet with its ICRC, which may still be changed before publish().
  std::span<std::byte> seal() {
    std::byte* const at = line(written_);
    const std::span packet(at + kLengthBytes, writing_bytes_);
    icrc_.seal(packet);
    base::store_plain(at, static_cast<std::uint32_t>(writing_bytes_));
    written_ += lines_of(writing_bytes_);
    base::prefetch_to_write(line(written_ + kAhead));
    return packet;
  }
  /// Publishes sealed packets. Returns whether there were any.
  bool publish() {
    if (published_ == written_) return false;
    published_ = written_;
    tail_.store(written_, std::memory_order_release);
    return true;
  }
  /// The writer is gone; call it last.
  void abandon() { abandoned_.store(true, std::memory_order_release); }

  // The reading end.

  [[nodiscard]] bool ready() const { return tail_.load(std::memory_order_acquire) != taken_; }
  /// Whether nothing comes any more.
  [[nodiscard]] bool ended() const {
    return abandoned_.load(std::memory_order_acquire) && !ready();
  }
  /// Adds a burst to `burst`; it is valid until the next call.
  void take(std::vector<Arrived>& burst) {
    const std::uint64_t end = tail_.load(std::memory_order_acquire);
    if (read_published_ != taken_) {
      read_published_ = taken_;
      read_.store(taken_, std::memory_order_release);
    }
    for (std::size_t count = 0; taken_ != end && count < kBurst;) {
      const std::byte* const at = line(taken_);
      base::prefetch_line(line(taken_ + kAhead));
      const auto bytes = base::load_plain<std::uint32_t>(at);
      if (bytes == 0) {
        taken_ += kLines - taken_ % kLines;
        continue;
      }
      const std::span ib(at + kLengthBytes, bytes);
      if (icrc_.matches(ib)) burst.push_back({from_, ib});
      taken_ += lines_of(bytes);
      ++count;
    }
  }

 private:
  static constexpr std::uint64_t kAhead = 8;

  static constexpr std::uint64_t lines_of(std::size_t bytes) {
    return (kLengthBytes + bytes + base::kLineBytes - 1) / base::kLineBytes;
  }
  [[nodiscard]] std::byte* line(std::uint64_t number) const {
    return lines_ + number % kLines * base::kLineBytes;
  }
  [[nodiscard]] bool has_room(std::uint64_t lines) {
    if (written_ + lines - read_seen_ <= kLines) return true;
    read_seen_ = read_.load(std::memory_order_acquire);
    return written_ + lines - read_seen_ <= kLines;
  }

  PortAddress from_;
  Icrc icrc_;
  std::unique_ptr<std::byte[]> bytes_;
  std::byte* lines_;
  std::atomic<bool> abandoned_{false};
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  alignas(64) std::atomic<std::uint64_t> read_{0};
  alignas(64) std::uint64_t written_ = 0;  // from here the writer's own
  std::uint64_t published_ = 0;
  std::uint64_t read_seen_ = 0;
  std::size_t writing_bytes_ = 0;
  alignas(64) std::uint64_t taken_ = 0;  // from here the reader's own
  std::uint64_t read_published_ = 0;
};

}  // namespace espalier::fabric::roce

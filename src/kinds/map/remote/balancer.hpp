// SPDX-License-Identifier: Apache-2.0
// Balances reads of interior nodes between a device's own memory and the host's, where both have
// copies [Honeycomb §5]: while the device's memory serves more than its share, and the path to the
// host has capacity, cached nodes are read from the host's memory.
//
// It counts the bytes served by each memory in a decaying window, and the bytes in flight from the
// host. `weight` is the number of bytes that the device's memory serves for each byte from the
// host.
//
//   cached bytes <= weight x bytes read from the host, as long as kRoomBytes has room
//
// Nothing is balanced with few walks in flight: latency then matters more than throughput.
//
// Affects performance only: bytes read either way are the same kind of hint.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <utility>

#include "reach/read_port.hpp"

namespace espalier::place {

class Balancer {
 public:
  /// Limit on bytes in flight from the host for another node to be read there.
  static constexpr std::uint64_t kRoomBytes = 64 << 10;
  /// Walks in flight below which nothing is balanced.
  static constexpr std::size_t kBusyWalks = 8;
  /// The recent byte counts are halved when their sum exceeds this.
  static constexpr std::uint64_t kWindowBytes = 1 << 20;

  /// `weight`: at least 1. The port outlives it.
  Balancer(std::uint32_t weight, const ReadPort& port) : weight_(weight), port_(port) {}

  /// Sets the number of walks in flight.
  void set_walks(std::size_t walks) { walks_ = walks; }
  /// Counts bytes that were served from the cache.
  void took(std::uint64_t bytes) { remembered_ += bytes; }
  /// Whether a cached node, of which about `bytes` are needed, is to be read from the host's
  /// memory; counts it in sent().
  [[nodiscard]] bool sends_to_host(std::uint64_t bytes) {
    if (walks_ < kBusyWalks) return false;
    const std::uint64_t now = port_.traffic().bytes;
    read_ += now - std::exchange(seen_, now);
    if (remembered_ + read_ > kWindowBytes) {
      remembered_ /= 2;
      read_ /= 2;
    }
    if (port_.bytes_in_flight() + bytes > kRoomBytes || remembered_ <= weight_ * read_) {
      return false;
    }
    ++sent_;
    return true;
  }
  /// Cached nodes that were read from the host's memory.
  [[nodiscard]] std::uint64_t sent() const { return sent_; }

 private:
  const std::uint64_t weight_;
  const ReadPort& port_;
  std::size_t walks_ = 0;
  std::uint64_t remembered_ = 0;  // recent bytes from the cache
  std::uint64_t read_ = 0;        // recent bytes from the host
  std::uint64_t seen_ = 0;        // the port's bytes that read_ includes
  std::uint64_t sent_ = 0;
};

}  // namespace espalier::place

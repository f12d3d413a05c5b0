// SPDX-License-Identifier: Apache-2.0
// Divides what walks read of interior nodes between a device's own memory and the host's, where the
// device has it in both [Honeycomb §5]: while the device's memory is asked for more than its part,
// and the way to the host has room, a node that is remembered is read of the host's memory.
//
// What is counted: the bytes that came of either, of late; and what is on its way from the host. A
// weight says how many bytes the device's memory gives while the way to the host gives one.
//
//   remembered bytes <= weight x bytes read of the host, as long as kRoomBytes has room
//
// With few walks in flight nothing is divided: then what counts is how long one waits.
//
// It is a matter of speed alone: what is read either way is the same kind of hint.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <utility>

#include "reach/read_port.hpp"

namespace espalier::place {

class Balancer {
 public:
  /// On their way from the host, at most, for a node more to be read there.
  static constexpr std::uint64_t kRoomBytes = 64 << 10;
  /// Walks in flight below which nothing is divided.
  static constexpr std::size_t kBusyWalks = 8;
  /// What came longer ago than so many bytes counts half, and less and less.
  static constexpr std::uint64_t kWindowBytes = 1 << 20;

  /// `weight`: at least 1. The port outlives it.
  Balancer(std::uint32_t weight, const ReadPort& port) : weight_(weight), port_(port) {}

  /// So many walks are in flight now.
  void set_walks(std::size_t walks) { walks_ = walks; }
  /// So many bytes were taken of what is remembered.
  void took(std::uint64_t bytes) { remembered_ += bytes; }
  /// Whether a node that is remembered, and of which about so many bytes are wanted, is to be read
  /// of the host's memory; counts those.
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
  /// Nodes that were read of the host's memory although they were remembered.
  [[nodiscard]] std::uint64_t sent() const { return sent_; }

 private:
  const std::uint64_t weight_;
  const ReadPort& port_;
  std::size_t walks_ = 0;
  std::uint64_t remembered_ = 0;  // bytes of late
  std::uint64_t read_ = 0;        // the same, of the host
  std::uint64_t seen_ = 0;        // of the port's bytes, counted in read_
  std::uint64_t sent_ = 0;
};

}  // namespace espalier::place

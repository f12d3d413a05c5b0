// SPDX-License-Identifier: Apache-2.0
// The numbers that a store on a node gives to its own transactions, so that it can repeat one whose
// connection was lost (espalier/transaction.hpp).
//
// Its client is made with the first transaction, and anew when the node does not know it any more.
// All numbers below the lowest one that is in flight are acknowledged.
//
// Thread: any.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>

#include "channel/channel.hpp"
#include "espalier/error.hpp"

namespace espalier::client {

class OwnNumbers {
 public:
  struct Number {
    std::uint64_t client = 0;
    std::uint64_t number = 0;
    std::uint64_t acknowledged = 0;
  };

  /// The next number; waits while the oldest one in flight is 256 behind it. Cost: the first time a
  /// round trip. Errors: unsupported (an older node, which knows no numbers); those of asking;
  /// std::bad_alloc.
  Result<Number> begin(channel::Channel& channel);
  /// It was answered, or is given up: it is acknowledged with the next one that begins.
  void end(const Number& number) noexcept;
  /// Whether the node knows numbers, as far as it was asked.
  [[nodiscard]] bool are_known() {
    const std::lock_guard lock(mutex_);
    return !unsupported_;
  }
  /// The node does not know this client any more.
  void forget(std::uint64_t client) noexcept;

 private:
  Result<std::uint64_t> known_client(channel::Channel& channel);

  std::mutex mutex_;  // guards all below, and is held while a client is asked for
  std::condition_variable ended_;
  std::uint64_t client_ = 0;  // 0: there is none
  std::uint64_t next_ = 1;
  std::set<std::uint64_t> in_flight_;  // of the client
  bool unsupported_ = false;
};

}  // namespace espalier::client

// SPDX-License-Identifier: Apache-2.0
// Numbers that a store on a node assigns to its own transactions, so that it can retry one whose
// connection was lost (espalier/transaction.hpp).
//
// Its client id is created with the first transaction, and again when the node does not know it any
// more. All numbers below the lowest one in flight are acknowledged.
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
  /// round trip. Errors: unsupported (an older node without numbers); those of Channel::ask;
  /// std::bad_alloc.
  Result<Number> begin(channel::Channel& channel);
  /// The transaction was answered, or is given up: the next one that begins acknowledges it.
  void end(const Number& number) noexcept;
  /// False: the node is known not to support numbers.
  [[nodiscard]] bool are_known() {
    const std::lock_guard lock(mutex_);
    return !unsupported_;
  }
  /// The node does not know this client id any more.
  void forget(std::uint64_t client) noexcept;

 private:
  Result<std::uint64_t> known_client(channel::Channel& channel);

  std::mutex mutex_;  // guards all below, and is held while a client id is requested
  std::condition_variable ended_;
  std::uint64_t client_ = 0;  // 0: none
  std::uint64_t next_ = 1;
  std::set<std::uint64_t> in_flight_;  // of the client
  bool unsupported_ = false;
};

}  // namespace espalier::client

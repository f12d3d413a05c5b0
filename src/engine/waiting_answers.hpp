// SPDX-License-Identifier: Apache-2.0
// A connection's answers that wait for durability after their requests were freed
// (docs/design/durability.md): a queue in the order of their records, which is the order of
// sending.
//
// The queue is charged to the connection's share of message memory. Where that is exhausted, the
// request keeps its answer.
//
// Thread: the scheduler's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "engine/executor.hpp"
#include "rings/message_budget.hpp"
#include "wire/message.hpp"

namespace espalier::offload {

/// An answer whose request was freed.
struct WaitingAnswer {
  /// Longest payload: an error's detail, a number.
  static constexpr std::size_t kPayloadMax = 16;

  wire::ResponseHeader header{};     ///< flags, code, versions and tag
  std::uint64_t sequence = 0;        ///< the highest record that it depends on
  std::uint64_t version = 0;         ///< of `of`, that must be released; 0: none
  WorkedOn* of = nullptr;            ///< counts the answer as a user; null: none
  std::uint64_t timed_since_ns = 0;  ///< its request's sample began then; 0: not sampled
  std::array<char, kPayloadMax> payload{};
  std::uint8_t payload_bytes = 0;
  std::uint8_t ring = 0;
  std::uint8_t hops = 0;
  std::uint8_t offload = 0;

  [[nodiscard]] std::string_view text() const { return {payload.data(), payload_bytes}; }
};

class WaitingAnswers {
 public:
  /// The capacity that an empty queue keeps.
  static constexpr std::size_t kKept = 128;

  explicit WaitingAnswers(rings::MessageShare& share) : share_(share) {}
  /// Requires: it is empty.
  ~WaitingAnswers();
  WaitingAnswers(const WaitingAnswers&) = delete;
  WaitingAnswers& operator=(const WaitingAnswers&) = delete;

  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::size_t size() const { return count_; }
  /// Those of requests with so many hops.
  [[nodiscard]] std::uint32_t of_hops(std::uint8_t hops) const { return by_hops_[hops]; }
  /// Makes room for one more. False: the share, or the process, has no memory. Cost: doubles the
  /// capacity, so sometimes a copy.
  [[nodiscard]] bool make_room() noexcept;
  /// Requires: make_room() was true.
  void push(const WaitingAnswer& answer) noexcept;
  /// The next to be sent. Requires, of both: it is not empty.
  [[nodiscard]] const WaitingAnswer& front() const { return answers_[place_of_next()]; }
  void pop() noexcept;

 private:
  [[nodiscard]] std::size_t place_of_next() const;
  void resize(std::size_t capacity, std::unique_ptr<WaitingAnswer[]> answers) noexcept;

  rings::MessageShare& share_;
  std::unique_ptr<WaitingAnswer[]> answers_;  // a ring
  std::size_t capacity_ = 0;                  // a power of two, or 0
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::array<std::uint32_t, wire::kHopsMax + 1> by_hops_{};
};

}  // namespace espalier::offload

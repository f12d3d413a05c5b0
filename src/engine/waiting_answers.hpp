// SPDX-License-Identifier: Apache-2.0
// Answers of one connection that wait until what they tell is durable, when their requests are gone
// (docs/design/durability.md). They stand in the order in which their records were handed over, and
// are given in that order.
//
// Their memory is of the connection's share of that for messages. Where there is none, a request
// keeps its answer.
//
// Thread: that of the scheduler.
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

/// An answer whose request is gone.
struct WaitingAnswer {
  /// Bytes of payload that one may have: the detail of an error, a number.
  static constexpr std::size_t kPayloadMax = 16;

  wire::ResponseHeader header{};     ///< flags, code, versions and tag
  std::uint64_t sequence = 0;        ///< no record that it tells of has a higher one
  std::uint64_t version = 0;         ///< of `of`, that must be released; 0: none
  WorkedOn* of = nullptr;            ///< counts it among its users; null: nothing
  std::uint64_t timed_since_ns = 0;  ///< its request was timed since then; 0: it was not
  std::array<char, kPayloadMax> payload{};
  std::uint8_t payload_bytes = 0;
  std::uint8_t ring = 0;
  std::uint8_t hops = 0;
  std::uint8_t offload = 0;

  [[nodiscard]] std::string_view text() const { return {payload.data(), payload_bytes}; }
};

class WaitingAnswers {
 public:
  /// What an empty queue keeps memory for.
  static constexpr std::size_t kKept = 128;

  explicit WaitingAnswers(rings::MessageShare& share) : share_(share) {}
  /// Requires: it is empty.
  ~WaitingAnswers();
  WaitingAnswers(const WaitingAnswers&) = delete;
  WaitingAnswers& operator=(const WaitingAnswers&) = delete;

  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::size_t size() const { return count_; }
  /// Of requests with so many hops behind them.
  [[nodiscard]] std::uint32_t of_hops(std::uint8_t hops) const { return by_hops_[hops]; }
  /// Makes room for one more. False: the share, or the process, has no memory for it.
  /// Cost: grows twofold, so a copy now and then.
  [[nodiscard]] bool make_room() noexcept;
  /// Requires: make_room() was true.
  void push(const WaitingAnswer& answer) noexcept;
  /// The one that is given next. Requires, of both: it is not empty.
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

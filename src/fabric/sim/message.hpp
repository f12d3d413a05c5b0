// SPDX-License-Identifier: Apache-2.0
// A message between the endpoints of a simulated world. It is never bytes on a wire, so it has no
// format: a message is lost, late or duplicated as a whole.
//
// Thread: plain values.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/types.hpp"

namespace espalier::fabric::sim {

/// A queue pair of the world. Neither number is ever used again, so that a late message finds no
/// pair.
struct PairName {
  std::uint32_t endpoint = 0;
  std::uint32_t number = 0;

  friend constexpr auto operator<=>(const PairName&, const PairName&) = default;
};

struct Message {
  enum class Kind : std::uint8_t {
    // Connecting. The connecting side repeats its request until there is an answer.
    connect,
    pending,  // it has come, and is undecided
    accept,
    reject,
    // Working. `sequence` counts the requests of one direction.
    request,
    answer,
    not_ready,  // a request found no receive: retry later
    // Ending.
    end,
    end_taken,
  };
  Kind kind = Kind::connect;
  PairName from;
  PairName to;
  std::uint64_t sequence = 0;
  std::uint64_t answered = 0;  // requests before this one need no answer any more
  std::uint32_t attempt = 0;   // how often it has found no receive
  Opcode opcode = Opcode::invalid;
  Status status = Status::success;
  std::uint32_t bytes = 0;
  std::uint32_t immediate = 0;
  RegionKey key = 0;
  std::uint64_t remote = 0;
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;
  std::uint64_t old_value = 0;
  std::vector<std::byte> data;
};

}  // namespace espalier::fabric::sim

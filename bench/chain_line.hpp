// SPDX-License-Identifier: Apache-2.0
// A client and a chain of replicas that one thread polls in turn: transactions one at a time, as
// the paper measures them [RAMBDA §VI-C, Fig. 12], by two methods that are made of the same parts.
//
//   one request    the whole transaction in one message; the head executes it, and its one
//                  record goes down the chain
//   one by one     HyperLoop's method: a READ of the head's memory for each read, in sequence,
//                  then a trip down the chain and back for each write, whose bytes are put at an
//                  offset by no processor: there is no index, no lock and no version
//
//     client --hop--> head --hop--> next --hop--> tail
//            <--hop--      <--hop--      <--hop--         acknowledgements go the same way back
//
// Each replica has a record in persistent memory (emulated) before it passes it on: the ring that
// its predecessor WRITEs into is registered as such, so a record that has arrived is durable
// [RAMBDA §III-D, §IV-B]. With the policy `cache` it is not, and the replica writes it back. A hop
// takes the time of its transport plus a modelled delay, during which work off the critical path is
// done: replicas between head and tail apply what they have passed on.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/node_transport.hpp"
#include "fabric/placement.hpp"

namespace espalier::bench {

enum class LineWay : std::uint8_t { one_request, one_by_one };

[[nodiscard]] std::string_view name(LineWay way);

struct LineSetting {
  NodeTransport transport = NodeTransport::shm;
  std::uint32_t nodes = 2;
  std::uint64_t pairs = 100'000;
  std::uint32_t value_bytes = 64;
  std::uint64_t hop_ns = 2'500;
  fabric::PlacementPolicy placement = fabric::PlacementPolicy::adaptive;
};

/// Keys, all of them different, are numbers below the setting's pairs.
struct LineTransaction {
  std::uint64_t number = 0;  ///< from 1 on; determines the written values
  std::vector<std::uint64_t> reads;
  std::vector<std::uint64_t> writes;
};

/// Counts of hops and messages.
struct LineCounts {
  std::uint64_t hops = 0;
  std::uint64_t bytes = 0;
  fabric::PlacedCounts placed;  ///< in replicas' persistent memory by their predecessors
};

class ChainLine {
 public:
  virtual ~ChainLine() = default;
  ChainLine(const ChainLine&) = delete;
  ChainLine& operator=(const ChainLine&) = delete;

  /// Returns a sum of the values read. Errors: throws std::runtime_error.
  virtual std::uint64_t transact(const LineTransaction& transaction) = 0;
  /// A sum of all pairs, which must be the same on all replicas. Errors: throws std::runtime_error,
  /// also if it is not.
  [[nodiscard]] virtual std::uint64_t contents() = 0;
  [[nodiscard]] virtual LineCounts counts() const = 0;

 protected:
  ChainLine() = default;
};

/// Opens a line with all pairs. Errors: throws std::runtime_error.
[[nodiscard]] std::unique_ptr<ChainLine> open_chain_line(LineWay way, const LineSetting& setting);

}  // namespace espalier::bench

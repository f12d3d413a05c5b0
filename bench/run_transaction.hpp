// SPDX-License-Identifier: Apache-2.0
// `espalier-bench transaction`: transactions over several keys, compared with other methods.
//
//   line   one at a time through a chain of replicas that one thread polls, as one request and
//          write by write, as HyperLoop does [RAMBDA Fig. 12]
//   bank   SmallBank on one store in this process, beside RocksDB's pessimistic transactions
//   ycsb   YCSB-T on the same two: transactions of several reads and writes of zipfian keys
//   clock  YCSB-A on a map with a clock of its own, and on one that shares a store's
//   nodes  puts on a node with a data folder, and on chains of such: what processors take for each
//   failover  a client that counts while the head of a chain of three is killed: its longest pause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/chain_line.hpp"
#include "bench/point_options.hpp"
#include "bench/transaction_target.hpp"

namespace espalier::bench {

/// How many keys a transaction reads and writes.
struct TransactionShape {
  std::uint32_t reads = 0;
  std::uint32_t writes = 1;
};

/// "READS+WRITES", as in 4+2.
[[nodiscard]] std::optional<TransactionShape> parse_shape(std::string_view text);

struct TransactionBenchOptions : PointOptions {
  static constexpr const char* kBench = "transaction";
  static constexpr const char* kSummary =
      "transactions through chains of nodes and of one store, beside other ways";

  // line
  std::vector<LineWay> ways{LineWay::one_request, LineWay::one_by_one};
  std::vector<NodeTransport> transports{NodeTransport::shm, NodeTransport::roce_memif};
  std::vector<std::uint32_t> nodes{2, 3};
  std::vector<std::uint32_t> value_bytes{64, 1024};
  std::vector<TransactionShape> shapes{{0, 1}, {4, 2}};
  std::vector<fabric::PlacementPolicy> placements{fabric::PlacementPolicy::adaptive};
  std::uint64_t hop_ns = 2'500;
  std::uint64_t pairs = 100'000;
  // bank, ycsb
  std::vector<TransactionTargetKind> targets{TransactionTargetKind::embedded,
                                             TransactionTargetKind::rocksdb};
  std::uint64_t accounts = 100'000;
  std::uint32_t length = 10;  ///< of the longest transactions of YCSB-T, which have 2 at least
  // bank, ycsb, clock, nodes
  std::vector<std::uint32_t> threads{1, 2};
  std::uint64_t keys = 1'000'000;
  // nodes, failover
  std::string dir;   ///< empty: that for temporary files
  std::string etcd;  ///< endpoints that keep the chains; empty: files do
  std::uint32_t in_flight = 256;
  std::vector<std::uint32_t> fence_ms{1000, 400};
  std::uint64_t puts = 2'000;  ///< of the counting client
  // all
  std::uint64_t ops = 100'000;

  void declare(OptionRows& rows);
  [[nodiscard]] std::vector<ExperimentRow> experiment_rows() const;
};

}  // namespace espalier::bench

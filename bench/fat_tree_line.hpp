// SPDX-License-Identifier: Apache-2.0
// Four nodes of this process that share a map, behind the 13 switches of a FatTree with tables for
// all of them: fat roots in the core and four layers of nodes below [Fat-B+Tree §IV-A, §V-C]. A get
// in a datagram arrives at its node with a hint. Nodes execute requests from rings, with that hint
// or without.
//
// Thread: one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/zipf.hpp"
#include "bench/own_line.hpp"
#include "channel/rings/ring_pipeline.hpp"
#include "dataplane/fat_tree.hpp"

namespace espalier::bench {

class FatTreeLine {
 public:
  static constexpr std::size_t kNodes = 4;

  /// The cost of one kind of requests, and the use of their hints.
  struct Sample {
    std::array<double, kNodes> cpu_ns{};  ///< of the node's worker, for a request
    std::array<double, kNodes> shares{};  ///< of all requests
    double admitted = 0;                  ///< shares of hints, with the next two
    double moved = 0;
    double refused = 0;
    double astray = 0;   ///< of hints: they led to nodes of other keys
    double at_leaf = 0;  ///< of requests, by the tables as they were compiled
    double hop_ns = 0;  ///< of processor time, of a get's frame at a switch; 0: none passed
  };

  /// Maps with a fourth of the keys each. Errors: throws std::runtime_error or std::bad_alloc.
  FatTreeLine(const SwitchRunOptions& options, std::uint64_t keys);
  ~FatTreeLine();

  /// Compiles the tables for requests of this skew, from the current trees.
  void compile(double theta);
  /// Each time that so many requests are done, addresses in the tables follow the trees: at a
  /// million requests a second as often as a controller looks what has moved.
  static constexpr std::size_t kBatch = 10'000;
  /// Has the nodes do requests, of which so many of a hundred read. Errors: as the constructor.
  Sample run(double theta, std::uint32_t read_percent, bool hinted, std::uint64_t seed);

 private:
  class Hints;
  struct Server;

  [[nodiscard]] Server& server_of(std::uint64_t item) { return *servers_[item / keys_each_]; }
  [[nodiscard]] std::string key_of(std::uint64_t item) const;
  [[nodiscard]] dataplane::TopologyBudget budget() const;
  /// `trace`: keys by which leaves count; empty: all alike.
  [[nodiscard]] dataplane::TreeImage read_tree(Server& server,
                                               std::span<const std::string> trace) const;
  [[nodiscard]] std::size_t count_hits(Server& server, const dataplane::IndexTables& tables,
                                       std::span<const std::string> keys) const;
  void follow();
  void install();
  double look_up(Server& server, std::span<const Request> requests);

  const SwitchRunOptions& options_;
  const std::uint64_t keys_each_;
  const std::string prefix_;  // of all keys
  dataplane::FatTree tree_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<dataplane::IndexTables> tables_;  // of each node
  double at_leaf_ = 0;                          // of requests, by these
};

}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
// Four nodes of this process that share a map, behind the 13 switches of a FatTree with tables for
// all of them: fat roots in the core and four layers of nodes below [Fat-B+Tree §IV-A, §V-C]. A get
// in a datagram that a client sends to a node comes there with a hint. Nodes do requests by rings,
// with that hint or without.
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

  /// What requests of one way have cost, and what became of their hints.
  struct Sample {
    std::array<double, kNodes> cpu_ns{};  ///< of the node's worker, for a request
    std::array<double, kNodes> shares{};  ///< of all requests
    double admitted = 0;                  ///< of hints, with the next two
    double moved = 0;
    double refused = 0;
    double hop_ns = 0;  ///< of processor time, of a get's frame at a switch; 0: none passed
  };

  /// Maps of a fourth of the keys each. Errors: throws std::runtime_error or std::bad_alloc.
  FatTreeLine(const SwitchRunOptions& options, std::uint64_t keys);
  ~FatTreeLine();

  /// Makes the tables for requests of this skew, of the trees as they are now.
  void compile(double theta);
  /// Has the nodes do requests, of which so many of a hundred read. Errors: as the constructor.
  Sample run(double theta, std::uint32_t read_percent, bool hinted, std::uint64_t seed);

 private:
  class Hints;
  struct Server;

  [[nodiscard]] Server& server_of(std::uint64_t item) { return *servers_[item / keys_each_]; }
  [[nodiscard]] std::string key_of(std::uint64_t item) const;
  double look_up(Server& server, std::span<const Request> requests);

  const SwitchRunOptions& options_;
  const std::uint64_t keys_each_;
  dataplane::FatTree tree_;
  std::vector<std::unique_ptr<Server>> servers_;
};

}  // namespace espalier::bench

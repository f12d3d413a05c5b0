// SPDX-License-Identifier: Apache-2.0
// `espalier-bench switch`: the benefit and the cost of a switch that knows the top of a tree
// [Fat-B+Tree §V-B].
//
//   gets      of a map, through one switch over memif, in one way after another (below)
//   parts     of scans of --range-keys keys in 1, 2, 5 and 10 parts [Fat-B+Tree §IV-C], one-sided
//             and in-network, and nothing is remembered
//   hints     of gets that ask the node, and bring a hint of the leaf or of the node above it: what
//             they cost the node beside gets without one; with --writes what becomes of hints that
//             are up to 10 000 requests old
//   hops      READs through the paper's tree, from the root and from where the tables lead; client,
//             switch and node take turns on one core, so that each hop costs both ways the same; at
//             one point, or at those of the paper's figures (figure_points.hpp)
//   fat-tree  gets and puts at four nodes behind a FatTree of switches, whose clients ask by
//             datagrams that are hinted on the way [Fat-B+Tree §V-C]: what they cost nodes, and a
//             model of the rate of clients, at the points of the paper's figure
//             (ethernet_model.hpp)
//   function  nanoseconds of the packet function, by kinds of frames
//   forward   frames a second of the switch, with tables and without
//   install   compiling tables, changing one node's entries and replacing all of them while frames
//             are forwarded; none may be lost, or led where neither the old nor the new ones lead
//
// The ways of `gets`:
//
//   rpc              the node is asked
//   one-sided        the client walks by READs, and remembers nothing but the page table
//   one-sided-cache  and remembers interior nodes and heads of leaves
//   in-network       READs that carry the key, which the switch redirects
//   in-network-writes  the same, while so many of 100 requests are writes (--writes), beside which
//                    tables age until the controller looks again (--delay)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/point_options.hpp"

namespace espalier::bench {

/// Without a name all experiments run; with a node's address only `gets`.
struct SwitchRunOptions : PointOptions {
  static constexpr const char* kBench = "switch";
  static constexpr const char* kSummary =
      "what a switch saves that knows the tree's top, and costs";

  std::vector<std::string> figures;  ///< all their points; empty: of `hops` one point
  std::string node_address;          ///< a running switch's, for clients; empty: starts all
  std::string map = "default";       ///< there, which has the keys
  std::uint64_t keys = 200'000;      ///< of the map, and of the trees of the others
  std::uint64_t value_bytes = 100;
  std::uint32_t node_bytes = 4096;
  std::uint64_t ops = 5'000;         ///< of each way in each round
  std::uint64_t range_keys = 100;    ///< of each scan of `parts`
  std::uint64_t frames = 1'000'000;  ///< of each kind in each round, of `function` and `forward`
  std::uint64_t updates = 2'000;     ///< of `install`: of one node's entries
  std::uint64_t installs = 20;       ///< of `install`: compilations, and of whole tables
  std::uint64_t model_trip_ns = 16'100;  ///< for `model_...`: a trip from client to node and back
  std::uint32_t in_flight = 16;
  std::uint32_t rounds = 5;  ///< each with all ways in turn
  std::uint64_t ranges = 600;
  std::uint64_t sets = 3;
  std::uint64_t nodes_per_set = 3600;
  std::uint32_t write_percent = 0;  ///< of the requests of another way; 0: none
  std::uint32_t delay_ms = 10;      ///< of the own controller, between two rounds

  void declare(OptionRows& rows);
  [[nodiscard]] std::vector<ExperimentRow> experiment_rows() const;
};

}  // namespace espalier::bench

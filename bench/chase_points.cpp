// SPDX-License-Identifier: Apache-2.0
// `bench rings --experiment chase`: a linked list in the node's memory, each element on a cache
// line of its own and in random order. A request picks one at random and reads the second after it
// [RAMBDA §VI-A, Fig. 7].
//
// The offload belongs to this benchmark, and is registered with its node only: it prefetches a
// line, yields, and finds the line in the cache in its next turn. So many requests in flight wait
// for memory together, as those of the paper's accelerator do. In `hop-by-hop` the client gets one
// element at a time, and asks for the next.
#include <fmt/core.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "bench/memory_probe.hpp"
#include "bench/noop_client.hpp"
#include "bench/own_node.hpp"
#include "bench/point_run.hpp"
#include "bench/probe.hpp"
#include "bench/run_rings.hpp"
#include "engine/call.hpp"
#include "engine/registry.hpp"

namespace espalier::bench {
namespace {

using offload::Call;
using offload::Next;

constexpr std::uint32_t kConnections = 16;  // as in the paper
constexpr std::uint32_t kLinks = 3;         // to read the one picked, and the two after it
constexpr auto kFollow = static_cast<wire::OffloadId>(wire::kOwnOffloadIds);

/// The state of a request.
struct FollowState {
  std::uint64_t node = 0;
  std::uint32_t links_left = 0;  // 0: new
};

// Prefetches the line of a node, and yields until it has arrived.
Next ask_for_line(Call& call, const ChaseBlock& list, const FollowState& state) {
  list.prefetch(state.node);
  return call.again();
}

Next follow(Call& call) {
  const auto& list = *static_cast<const ChaseBlock*>(call.offload().context);
  FollowState& state = call.state<FollowState>();
  if (state.links_left == 0) {
    std::memcpy(&state.node, call.payload().data(), sizeof state.node);
    state.links_left = call.argument();
    if (state.node >= list.lines() || state.links_left < 1 || state.links_left > kLinks) {
      return call.fail({Code::invalid_argument, 0, call.argument()});
    }
    return ask_for_line(call, list, state);
  }
  state.node = list.next(state.node);
  if (--state.links_left != 0) return ask_for_line(call, list, state);
  const std::string_view node(reinterpret_cast<const char*>(&state.node), sizeof state.node);
  return call.answer({}, {node});
}

offload::Offload follow_offload(const ChaseBlock& list) {
  return {{.id = kFollow,
           .name = "follow",
           .format = "argument: how many links; payload: 8 bytes, a node of the list",
           .summary = "answers the node at the end of the last link",
           .right = offload::Right::read,
           .limits = {.payload_bytes_min = sizeof(std::uint64_t),
                      .payload_bytes_max = sizeof(std::uint64_t)}},
          {.step = follow, .context = &list}};
}

struct ChasePlan {
  std::uint32_t in_flight = 1;
  std::uint32_t links_per_request = kLinks;
  std::uint64_t ops = 0;
  std::uint64_t seed = 1;
  std::uint32_t connections = 1;  ///< that share the chases
  bool polls = true;              ///< the node polls each ring instead of doorbells
};

/// One thread's chases, each with a request in flight.
class Chaser {
 public:
  Chaser(const std::string& address, const ChasePlan& plan, std::uint64_t nodes)
      : chases_(plan.in_flight),
        links_per_request_(plan.links_per_request),
        nodes_(nodes),
        random_(plan.seed) {
    for (std::uint32_t i = 0; i < plan.connections; ++i) lanes_.push_back(open_lane(address));
  }

  /// Returns a sum over the nodes at which `ops` chases ended.
  std::uint64_t run(std::uint64_t ops, base::Histogram& latencies) {
    std::uint64_t sum = 0;
    std::uint64_t begun = 0;
    for (std::uint32_t i = 0; i < chases_.size() && begun < ops; ++i, ++begun) begin(i);
    client::Incoming response;
    for (std::uint64_t ended = 0; ended < ops;) {
      if (!receive(response)) continue;
      Chase& chase = chases_.at(response.header.tag);
      const std::uint64_t node = node_in(response);
      chase.links_left -= links_per_request_;
      if (chase.links_left != 0) {
        send(response.header.tag, node);
        continue;
      }
      latencies.record(chase.watch.elapsed_ns());
      sum += node;
      ++ended;
      if (begun == ops) continue;
      ++begun;
      begin(response.header.tag);
    }
    return sum;
  }

 private:
  struct Chase {
    std::uint32_t links_left = 0;
    base::Stopwatch watch;
  };

  void begin(std::uint32_t number) {
    chases_[number].links_left = kLinks;
    chases_[number].watch.restart();
    send(number, random_.below(nodes_));
  }

  /// From any lane. With one it waits; with several it polls one, and the next call polls the next.
  bool receive(client::Incoming& response) {
    client::ThreadRings& lane = *lanes_[looked_at_ % lanes_.size()];
    if (lane.receive(response)) return true;
    lane.ring();
    ++looked_at_;
    const bool lost = lanes_.size() == 1 ? !lane.wait() : lane.lost();
    if (lost) throw std::runtime_error("the node is gone");
    return false;
  }

  void send(std::uint32_t number, std::uint64_t node) {
    client::ThreadRings& lane = *lanes_[number % lanes_.size()];
    wire::CallMessage request;
    request.offload = kFollow;
    request.argument = links_per_request_;
    request.payload = {reinterpret_cast<const char*>(&node), sizeof node};
    while (!lane.send(request, number)) {
      if (lane.lost()) throw std::runtime_error("the node is gone");
      lane.ring();
    }
  }

  static std::uint64_t node_in(const client::Incoming& response) {
    std::uint64_t node = 0;
    if (response.header.code != 0 || response.payload.size() != sizeof node) {
      throw std::runtime_error("the node did not follow the list");
    }
    std::memcpy(&node, response.payload.data(), sizeof node);
    return node;
  }

  std::vector<std::unique_ptr<client::ThreadRings>> lanes_;
  std::size_t looked_at_ = 0;  // the next lane to poll
  std::vector<Chase> chases_;
  std::uint32_t links_per_request_;
  std::uint64_t nodes_;
  base::Random random_;
};

PointSample measure_chase(const ChaseBlock& list, const ChasePlan& plan) {
  const std::vector<offload::Offload> own{follow_offload(list)};
  const std::span<const offload::Offload> calls(own);
  const offload::Kind kind{.name = "list", .calls = {&calls, 1}};
  const std::size_t watched = plan.polls ? plan.connections : 0;
  const auto node = start_own_node(spinning_node_config(),
                                   {.own_kinds = {&kind, 1}, .core = {.watch_all = watched}});
  PointSample sample;
  run_pinned([&] {
    Chaser chaser(local_address(*node), plan, list.lines());
    const base::Stopwatch watch;
    sample.checksum = chaser.run(plan.ops, sample.latencies);
    sample.took(plan.ops, static_cast<double>(watch.elapsed_ns()) * 1e-9);
  });
  return sample;
}

/// A list that is made on first use: not all listed points are measured.
class LateList {
 public:
  LateList(std::uint64_t nodes, std::uint64_t seed) : nodes_(nodes), seed_(seed) {}
  const ChaseBlock& get() {
    if (!list_) list_ = std::make_unique<const ChaseBlock>(nodes_ * kLineBytes, seed_);
    return *list_;
  }

 private:
  std::uint64_t nodes_;
  std::uint64_t seed_;
  std::unique_ptr<const ChaseBlock> list_;
};

}  // namespace

std::vector<MeasuredPoint> chase_points(const RingsOptions& options) {
  const auto list = std::make_shared<LateList>(options.list_nodes, options.seed);
  std::vector<MeasuredPoint> points;
  const auto add = [&](const ChasePlan& plan) {
    points.push_back({.workload = plan.links_per_request == 1 ? "hop-by-hop" : "offload",
                      .parameters = {{"list_nodes", options.list_nodes},
                                     {"in_flight", plan.in_flight},
                                     {"round_trips_per_op", kLinks / plan.links_per_request},
                                     {"connections", plan.connections},
                                     {"news_by", plan.polls ? "polling" : "doorbells"}},
                      .threads = 2,
                      .answers = "the ends of the same chases",
                      .measure = [list, plan] { return measure_chase(list->get(), plan); }});
  };
  for (const std::uint32_t in_flight : options.in_flight) {
    for (const std::uint32_t links : {kLinks, std::uint32_t{1}}) {
      add({in_flight, links, options.ops, options.seed});
    }
  }
  // The paper's 16 connections, with 16 requests on each.
  for (const bool polls : {true, false}) {
    add({kConnections * options.chases, kLinks, options.ops, options.seed, kConnections, polls});
  }
  return points;
}

}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
// Three nodes that read, write, count and talk at random, and a model of what each may see.
//
// What each node offers:
//   [ 4 counters, which all add to | 4 words, which all swap one up | 3 blocks of 4 lines ]
// Block i is written by node i alone, all its words with one number that rises.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/testing/seeds.hpp"
#include "fabric/sim/testing/two_ends.hpp"

namespace espalier::fabric::sim {
namespace {

constexpr std::uint32_t kNodes = 3;
constexpr std::uint64_t kSharedWords = 4;
constexpr std::uint64_t kBlockWords = 32;
constexpr std::uint64_t kReceives = 4;

constexpr std::uint64_t add_offset(std::uint64_t i) { return 8 * i; }
constexpr std::uint64_t swap_offset(std::uint64_t i) { return 8 * (kSharedWords + i); }
constexpr std::uint64_t block_offset(std::uint64_t i) { return 64 + 8 * kBlockWords * i; }

/// One request, and what the model has to know of it.
struct Op {
  Opcode opcode = Opcode::invalid;
  std::uint64_t word = 0;   // which counter, word or block
  std::uint64_t value = 0;  // what is written, sent or expected
  std::uint64_t low = 0;    // a READ sees nothing older
  std::array<std::uint64_t, kBlockWords> bytes{};
};

/// One end of the pair between two nodes.
struct Side {
  explicit Side(Endpoint& endpoint) : end(endpoint) {}
  End end;
  std::uint32_t node = 0;
  std::uint32_t peer = 0;
  std::deque<Op> ops;
  std::size_t completed = 0;
  std::uint64_t sent = 0;
  std::uint64_t sent_well = 0;
  std::uint64_t received = 0;
  std::array<std::uint64_t, kReceives> rooms{};
  bool failed = false;
};

struct Node {
  std::unique_ptr<Endpoint> endpoint;
  std::unique_ptr<Offer> memory;
  std::array<std::vector<std::uint64_t>, kSharedWords> added;    // old values
  std::array<std::vector<std::uint64_t>, kSharedWords> swapped;  // of those that have swapped
  std::array<std::uint64_t, kSharedWords> adds{};                // posted
  std::array<std::uint64_t, kNodes> written{};                   // by node, posted
  std::array<std::uint64_t, kNodes> written_well{};              // by node, completed
};

class Mesh {
 public:
  Mesh(std::uint64_t seed, const Faults& faults) : world_(seed, faults), random_(seed + 1) {
    for (std::uint32_t i = 0; i < kNodes; ++i) {
      nodes_[i].endpoint = world_.add_node(std::string(1, static_cast<char>('a' + i)));
      nodes_[i].memory = std::make_unique<Offer>(*nodes_[i].endpoint, 4096);
      EXPECT_TRUE(nodes_[i].endpoint->listen(name(i)).has_value());
    }
    for (std::uint32_t i = 0; i < kNodes; ++i) {
      for (std::uint32_t j = i + 1; j < kNodes; ++j) {
        Side& from = add_side(i, j);
        Side& to = add_side(j, i);
        EXPECT_TRUE(connect(world_, from.end, to.end, name(j)));
        for (Side* side : {&from, &to}) {
          for (std::uint64_t room = 0; room < kReceives / 2; ++room) post_room(*side, room);
        }
      }
    }
  }

  static std::string name(std::uint32_t node) { return {static_cast<char>('a' + node)}; }
  World& world() { return world_; }

  /// Posts something somewhere, lets some time pass, and checks what has completed.
  void go_on(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      Side& side = *sides_[random_.below(sides_.size())];
      if (side.ops.size() - side.completed < 40) post(side);
      world_.run_for(random_.below(1'500));
      collect();
    }
  }
  /// Lets everything end. Receivers post receives again meanwhile.
  void finish() {
    for (int i = 0; i < 1'000; ++i) {
      world_.run_for(100'000);
      collect();
    }
  }
  void check(bool all_well) {
    for (const auto& side : sides_) {
      EXPECT_EQ(side->completed, side->ops.size());
      EXPECT_TRUE(!all_well || !side->failed);
      Side& peer = *std::find_if(sides_.begin(), sides_.end(), [&](const auto& other) {
                      return other->node == side->peer && other->peer == side->node;
                    })->get();
      // Each message that completed successfully has arrived; once, for these are counted up one by
      // one.
      EXPECT_GE(peer.received, side->sent_well);
      EXPECT_TRUE(!all_well || peer.received == side->sent);
    }
    for (Node& node : nodes_) check_counters(node, all_well);
  }

 private:
  Side& add_side(std::uint32_t node, std::uint32_t peer) {
    Side& side = *sides_.emplace_back(std::make_unique<Side>(*nodes_[node].endpoint));
    side.node = node;
    side.peer = peer;
    return side;
  }
  void post_room(Side& side, std::uint64_t room) {
    const Receive receive{room, std::as_writable_bytes(std::span(&side.rooms[room], 1))};
    side.end.pair->post_receives({&receive, 1});
  }

  void post(Side& side) {
    Node& peer = nodes_[side.peer];
    Offer& memory = *peer.memory;
    Op& op = side.ops.emplace_back();
    const std::uint64_t id = side.ops.size() - 1;
    const auto bytes = std::as_writable_bytes(std::span(op.bytes));
    WorkRequest request;
    op.word = random_.below(kSharedWords);
    switch (random_.below(5)) {
      case 0:
        op.word = random_.below(kNodes);
        op.low = op.word == side.node ? peer.written[op.word] : peer.written_well[op.word];
        request = WorkRequest::read(id, bytes, memory.key(), memory.remote(block_offset(op.word)));
        break;
      case 1:
        op.value = ++peer.written[side.node];
        op.bytes.fill(op.value);
        request =
            WorkRequest::write(id, bytes, memory.key(), memory.remote(block_offset(side.node)));
        break;
      case 2:
        ++peer.adds[op.word];
        request = WorkRequest::fetch_add(id, memory.key(), memory.remote(add_offset(op.word)), 1);
        break;
      case 3:
        op.value = peer.swapped[op.word].size();
        request = WorkRequest::compare_swap(id, memory.key(), memory.remote(swap_offset(op.word)),
                                            op.value, op.value + 1);
        break;
      default:
        op.bytes[0] = side.sent++;
        request = WorkRequest::send(id, bytes.first(8));
        if (random_.chance(0.5)) request = request.as_inline();
    }
    op.opcode = request.opcode;
    if (random_.chance(0.1)) request = request.after_fence();
    ASSERT_EQ(side.end.pair->post(request).taken, 1u);
  }

  void collect() {
    for (const auto& side : sides_) {
      side->end.completions.clear();
      side->end.received.clear();
      side->end.poll();
      for (const Completion& completion : side->end.completions) done(*side, completion);
      for (const Completion& received : side->end.received) got(*side, received);
    }
  }

  void done(Side& side, const Completion& completion) {
    ASSERT_EQ(completion.work_id, side.completed++);
    const Op& op = side.ops[completion.work_id];
    ASSERT_EQ(completion.opcode, op.opcode);
    ASSERT_TRUE(!side.failed || completion.status == Status::flushed);
    side.failed |= completion.status != Status::success;
    if (side.failed) return;
    Node& peer = nodes_[side.peer];
    if (op.opcode == Opcode::read) {
      for (std::size_t i = 0; i < kBlockWords; ++i) {
        EXPECT_GE(op.bytes[i], op.low);
        EXPECT_LE(op.bytes[i], peer.written[op.word]);
        EXPECT_EQ(op.bytes[i], op.bytes[i / 8 * 8]);
      }
    }
    if (op.opcode == Opcode::write) peer.written_well[side.node] = op.value;
    if (op.opcode == Opcode::fetch_add) peer.added[op.word].push_back(completion.old_value);
    if (op.opcode == Opcode::compare_swap && completion.old_value == op.value) {
      peer.swapped[op.word].push_back(completion.old_value);
    }
    if (op.opcode == Opcode::send) ++side.sent_well;
  }

  void got(Side& side, const Completion& completion) {
    if (completion.status != Status::success) return;
    EXPECT_EQ(completion.bytes, 8u);
    EXPECT_EQ(side.rooms[completion.work_id], side.received++);
    post_room(side, (completion.work_id + kReceives / 2) % kReceives);
  }

  // No two atomics have seen the same value of a counter, and none was left out.
  void check_counters(Node& node, bool all_well) {
    for (std::uint64_t i = 0; i < kSharedWords; ++i) {
      for (auto* seen : {&node.added[i], &node.swapped[i]}) {
        std::sort(seen->begin(), seen->end());
        EXPECT_EQ(std::adjacent_find(seen->begin(), seen->end()), seen->end());
      }
      const std::uint64_t added = node.memory->word(add_offset(i));
      const std::uint64_t swapped = node.memory->word(swap_offset(i));
      EXPECT_GE(added, node.added[i].size());
      EXPECT_LE(added, node.adds[i]);
      EXPECT_GE(swapped, node.swapped[i].size());
      EXPECT_TRUE(node.added[i].empty() || node.added[i].back() < added);
      if (!all_well) continue;
      EXPECT_EQ(added, node.adds[i]);
      EXPECT_EQ(swapped, node.swapped[i].size());
      for (std::uint64_t by = 0; by < kNodes; ++by) {
        EXPECT_EQ(node.memory->word(block_offset(by)), node.written[by]);
      }
    }
  }

  World world_;
  base::Random random_;
  std::array<Node, kNodes> nodes_;
  std::vector<std::unique_ptr<Side>> sides_;
};

void add(Counts& all, const Counts& more) {
  all.lost += more.lost;
  all.late += more.late;
  all.duplicated += more.duplicated;
  all.sent_again += more.sent_again;
  all.duplicates_refused += more.duplicates_refused;
  all.reads_again += more.reads_again;
  all.reads_reordered += more.reads_reordered;
  all.torn_reads += more.torn_reads;
  all.torn_writes += more.torn_writes;
  all.receiver_not_ready += more.receiver_not_ready;
  all.retry_exceeded += more.retry_exceeded;
  all.crashes += more.crashes;
  all.cut_off += more.cut_off;
  all.held += more.held;
  all.left_undone += more.left_undone;
}

// Some seeds are calm in one way or another: what hides behind one fault may show without it.
Faults faults_of(std::uint64_t seed) {
  base::Random random(seed);
  Faults faults = Faults::harsh();
  if (random.chance(0.3)) faults.loss = 0;
  if (random.chance(0.3)) faults.late = 0;
  if (random.chance(0.3)) faults.duplication = random.chance(0.5) ? 0 : 0.5;
  if (random.chance(0.3)) faults.tear = random.chance(0.5) ? 0 : 1;
  if (random.chance(0.3)) faults.hold_read = 0;
  if (random.chance(0.3)) faults.reads_in_order = true;
  if (random.chance(0.3)) faults.split_atomic_ns = {};
  return faults;
}

/// What seldom happens, and how often it has.
using Rare = std::vector<std::pair<const char*, std::uint64_t>>;

bool all_happened(const Rare& rare) {
  return std::ranges::all_of(rare, [](const auto& one) { return one.second != 0; });
}

void expect_reached(const base::Seeds& seeds, const Rare& rare) {
  for (const auto& [what, count] : rare) {
    EXPECT_GT(count, 0u) << what;
    seeds.report(what, count);
  }
}

TEST(SimRandom, WhatIsSeenIsWhatMayBeSeen) {
  const std::uint64_t first = base::seed_from_environment(1);
  base::Seeds seeds(100);
  Counts all;
  const auto rare = [&all] {
    return Rare{{"lost", all.lost},
                {"late", all.late},
                {"duplicated", all.duplicated},
                {"sent again", all.sent_again},
                {"duplicates refused", all.duplicates_refused},
                {"reads again", all.reads_again},
                {"reads reordered", all.reads_reordered},
                {"torn reads", all.torn_reads},
                {"torn writes", all.torn_writes},
                {"receiver not ready", all.receiver_not_ready}};
  };
  for (; seeds.more(all_happened(rare())); seeds.done()) {
    const std::uint64_t seed = first + seeds.ended();
    SCOPED_TRACE(seed);
    Mesh mesh(seed, faults_of(seed));
    mesh.go_on(500);
    mesh.finish();
    mesh.check(true);
    add(all, mesh.world().counts());
    if (testing::Test::HasFailure()) return;
  }
  expect_reached(seeds, rare());
}

// Something happens to node c, or to a link of it, in the middle.
void suffer(Mesh& mesh, std::uint64_t kind) {
  World& world = mesh.world();
  mesh.go_on(100);
  switch (kind) {
    case 0: world.crash("c"); break;
    case 1: world.cut("a", "c"); break;
    case 2: world.cut("c", "a"); break;
    default: world.pause("c");
  }
  mesh.go_on(kind % 2 == 0 ? 100 : 600);
  world.heal("a", "c");
  world.heal("c", "a");
  world.resume("c");
  mesh.go_on(100);
  mesh.finish();
}

TEST(SimRandom, AfterAccidentsNothingIsDoneTwice) {
  const std::uint64_t first = base::seed_from_environment(1);
  base::Seeds seeds(100);
  Counts all;
  const auto rare = [&all] {
    return Rare{{"retry exceeded", all.retry_exceeded},
                {"crashes", all.crashes},
                {"cut off", all.cut_off},
                {"held", all.held},
                {"left undone", all.left_undone}};
  };
  for (; seeds.more(all_happened(rare())); seeds.done()) {
    const std::uint64_t seed = first + seeds.ended();
    SCOPED_TRACE(seed);
    Mesh mesh(seed, faults_of(seed));
    suffer(mesh, seed % 4);
    mesh.check(false);
    add(all, mesh.world().counts());
    if (testing::Test::HasFailure()) return;
  }
  expect_reached(seeds, rare());
}

TEST(SimRandom, TheSameSeedMakesTheSameEvents) {
  const std::uint64_t first = base::seed_from_environment(1);
  std::map<std::uint64_t, std::uint64_t> traces;
  base::Seeds seeds(10);
  for (std::uint64_t seed = first; seed < first + seeds.count(); ++seed) {
    std::array<std::uint64_t, 2> twice{};
    for (std::uint64_t& trace : twice) {
      Mesh mesh(seed, Faults::harsh());
      suffer(mesh, seed % 4);
      trace = mesh.world().trace();
    }
    EXPECT_EQ(twice[0], twice[1]) << seed;
    EXPECT_TRUE(traces.emplace(twice[0], seed).second) << seed;
    seeds.done();
  }
}

}  // namespace
}  // namespace espalier::fabric::sim

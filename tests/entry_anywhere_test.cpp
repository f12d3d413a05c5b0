// SPDX-License-Identifier: Apache-2.0
// A walk may enter the tree at any node, from any hint, and never returns a wrong or stale answer:
// a bad hint only costs time (DESIGN idea 1).
//
// Hints name what is current, what was superseded, what is free, what belongs to another map,
// values, and blocks that are none of these, with the right generation or another. All that was
// asked, at the newest and at held versions, is replayed by version.
#include <gtest/gtest.h>

#include <atomic>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/copy_walker.hpp"
#include "tests/support/hints.hpp"
#include "tests/support/key_set.hpp"
#include "tests/support/scene.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/version_replay.hpp"
#include "tests/support/walk_recorder.hpp"

namespace espalier::test {
namespace {

// Values out of line of this map come to lie in buffers of the class of its nodes.
const MapOptions kSmall{.node_bytes = 512, .log_bytes = 64};
const MapOptions kLarger{.node_bytes = 1024, .log_bytes = 128};

// A value that lies in its buffer as a leaf would, with items that are not in the map. Whoever
// takes it for a node answers from them, or that the key is not there.
std::string forged_leaf() {
  Scene scene(kSmall);
  for (const char* key : {"1", "2", "3"}) scene.a.put(key, "forged");
  const std::byte* leaf = scene.map->at(scene.leaf_of("1").offset());
  const auto* bytes = reinterpret_cast<const char*>(leaf);
  return {bytes + sizeof(wire::ValueHeader), bytes + scene.map->geometry.node_bytes};
}

Question random_write(Random& random, const std::vector<std::string>& keys, bool shrinking,
                      const std::string& forged, const std::string& name) {
  constexpr Op kGrow[] = {Op::put, Op::put, Op::insert, Op::update, Op::erase};
  constexpr Op kShrink[] = {Op::put, Op::erase, Op::erase, Op::erase, Op::erase};
  Question question;
  question.op = shrinking ? random.pick(kShrink) : random.pick(kGrow);
  question.key = random.pick(keys);
  if (question.op == Op::erase) return question;
  question.value = name;
  if (random.one_in(3)) {
    question.value = random.one_in(2) ? forged : name + std::string(random.below(480), '.');
  }
  return question;
}

History merge(std::initializer_list<WalkRecorder*> recorders) {
  History history;
  for (WalkRecorder* recorder : recorders) {
    EXPECT_EQ(recorder->unexpected().value_or(""), "");
    std::ranges::move(recorder->log(), std::back_inserter(history.operations));
    recorder->log().clear();
  }
  return history;
}

// --- one thread: every block of the memory -------------------------------------------------------

class EntryAnywhere : public ::testing::TestWithParam<MapOptions> {
 protected:
  void change(HostWalker& walker, int writes, bool shrinking) {
    for (int i = 0; i < writes; ++i) {
      walker.ask(random_write(random_, keys_, shrinking, forged_, std::to_string(++value_)));
    }
  }

  // A block, whatever lies there, by its right generation and by two others.
  void enter_at(HostWalker& walker, std::uint64_t offset) {
    const auto header = base::load_plain<wire::BufferHeader>(scene_.map->at(offset));
    if (header.generation == 0 && header.map_id == 0) return;  // never used
    for (const std::uint32_t generation :
         {header.generation, header.generation - 1, header.generation + 1}) {
      const wire::Ref hint = wire::Ref::make(offset, generation);
      const Question question =
          random_read(random_, keys_, scene_.map->geometry.key_bytes_max);
      const bool newest = held_.empty() || random_.one_in(2);
      walker.ask(question, newest ? nullptr : random_.pick(held_)->read().held, hint);
    }
  }

  const std::uint64_t seed_ = seed_from_environment(81);
  Random random_{seed_};
  std::vector<std::string> keys_ = make_keys(KeyPattern::dense, 60, 32, seed_);
  std::string forged_ = forged_leaf();
  Clock clock_;
  Scene scene_{GetParam()};
  std::vector<std::unique_ptr<HeldHere>> held_;
  int value_ = 0;
};

TEST_P(EntryAnywhere, EveryBlockOfTheMemoryMayBeAHint) {
  SCOPED_TRACE(seed_text(seed_));
  tree::MapCore& other = scene_.add_map(kSmall);
  HostWalker walker(scene_.store, *scene_.map, 3, clock_);
  HostWalker other_writer(scene_.store, other, 4, clock_);
  for (int phase = 0; phase < 5; ++phase) {
    change(walker, 300, phase % 2 == 1);
    change(other_writer, 100, phase % 2 == 1);
    if (phase % 2 == 0) scene_.collect();
    held_.push_back(std::make_unique<HeldHere>(*scene_.map, scene_.context));
    if (held_.size() > 2) held_.erase(held_.begin());
  }
  change(walker, 50, false);
  const std::uint64_t end = scene_.store.region.end_offset();
  const std::uint64_t every = kSanitized ? 7 : 1;
  for (std::uint64_t offset = 0; offset < end; offset += every * wire::kBlockBytes) {
    enter_at(walker, offset);
  }
  const History history = merge({&walker.recorder});
  EXPECT_GT(history.operations.size(), 1000u);
  EXPECT_EQ(replay_versions(history).value_or(""), "");
}

// Writes enter by hints too: what they change must be what a walk from the root would change.
TEST_P(EntryAnywhere, WritesByHintsChangeTheRightLeaf) {
  SCOPED_TRACE(seed_text(seed_));
  HostWalker walker(scene_.store, *scene_.map, 3, clock_);
  HostWalker many(scene_.store, *scene_.map, 4, clock_, 8);
  Hints hints(*scene_.map, seed_);
  for (std::uint64_t i = 0; i < scaled(6000); ++i) {
    hints.current();
    Question write =
        random_write(random_, keys_, i / 400 % 2 == 1, forged_, std::to_string(++value_));
    if (random_.one_in(2)) {
      walker.ask(std::move(write), nullptr, hints.any());
    } else {
      many.executor.submit(many.recorder.ask(std::move(write), nullptr, hints.any()));
      if (random_.one_in(4)) many.executor.drain();
    }
  }
  many.executor.drain();
  EXPECT_EQ(replay_versions(merge({&walker.recorder, &many.recorder})).value_or(""), "");
}

INSTANTIATE_TEST_SUITE_P(Nodes, EntryAnywhere, ::testing::Values(kSmall, kLarger),
                         [](const auto& options) {
                           return "n" + std::to_string(options.param.node_bytes);
                         });

// --- many threads --------------------------------------------------------------------------------

class EntryAnywhereConcurrency : public ::testing::Test {
 protected:
  // Writes to one map, half of the time by hints, until the readers are done.
  void write(HostWalker& walker, Hints& hints, std::uint64_t seed) {
    Random random(seed);
    for (std::uint64_t i = 0; i < scaled(20'000) && readers_ != 0; ++i) {
      const std::string name = std::to_string(seed) + "." + std::to_string(i);
      hints.current();
      walker.ask(random_write(random, keys_, i / 200 % 2 == 1, forged_, name), nullptr,
                 random.one_in(2) ? hints.any() : wire::Ref{});
    }
  }

  // Reads by hints of this map and of the other, at the newest and at held versions.
  template <class Submit>
  void read(Hints& own, Hints& others, std::uint64_t seed, tree::ThreadContext& holder,
            Submit submit) {
    Random random(seed);
    std::unique_ptr<HeldHere> held;
    for (std::uint64_t i = steps_or(scaled(6000)); i != 0; --i) {
      own.current();
      others.current();
      if (random.one_in(200)) held.reset();
      if (random.one_in(100)) held = std::make_unique<HeldHere>(*scene_.map, holder);
      const wire::Ref hint = random.one_in(5) ? others.any() : own.any();
      const bool newest = held == nullptr || random.one_in(2);
      submit(random_read(random, keys_, scene_.map->geometry.key_bytes_max),
             newest ? nullptr : held->read().held, hint);
    }
    submit({}, nullptr, {});  // what is under way must end before the version is let go
    --readers_;
  }

  const std::uint64_t seed_ = seed_from_environment(82);
  std::vector<std::string> keys_ = make_keys(KeyPattern::dense, 60, 32, seed_);
  std::string forged_ = forged_leaf();
  Clock clock_;
  Scene scene_{kSmall};
  std::atomic<int> readers_{2};
};

TEST_F(EntryAnywhereConcurrency, OnlyRightAnswers) {
  SCOPED_TRACE(seed_text(seed_));
  tree::MapCore& map = *scene_.map;
  tree::MapCore& other = scene_.add_map(kSmall);
  HostWalker writer(scene_.store, map, 3, clock_);
  HostWalker second_writer(scene_.store, map, 4, clock_);
  HostWalker other_writer(scene_.store, other, 5, clock_);
  HostWalker reader(scene_.store, map, 6, clock_);
  CopyWalker copy_reader(scene_.store, map, 7, clock_, 4, seed_);
  std::vector<std::unique_ptr<Hints>> hints;
  for (std::uint64_t i = 0; i < 7; ++i) {
    hints.push_back(std::make_unique<Hints>(i == 2 || i > 4 ? other : map, seed_ + i));
  }
  {
    std::vector<std::jthread> threads;
    threads.emplace_back([&] { write(writer, *hints[0], seed_ + 10); });
    threads.emplace_back([&] { write(second_writer, *hints[1], seed_ + 11); });
    threads.emplace_back([&] { write(other_writer, *hints[2], seed_ + 12); });
    threads.emplace_back([&] {
      read(*hints[3], *hints[5], seed_ + 13, reader.context,
           [&](Question question, const memory::HeldVersion* held, wire::Ref hint) {
             if (!question.key.empty() || !question.high.empty()) {
               reader.ask(std::move(question), held, hint);
             }
           });
    });
    read(*hints[4], *hints[6], seed_ + 14, scene_.context,
         [&](Question question, const memory::HeldVersion* held, wire::Ref hint) {
           if (!question.key.empty() || !question.high.empty()) {
             copy_reader.submit(std::move(question), held, hint);
           }
           copy_reader.drain();
         });
  }
  const History history = merge({&writer.recorder, &second_writer.recorder, &reader.recorder,
                                 &copy_reader.recorder});
  EXPECT_EQ(replay_versions(history).value_or(""), "");
  EXPECT_EQ(replay_versions(merge({&other_writer.recorder})).value_or(""), "");
}

}  // namespace
}  // namespace espalier::test

// SPDX-License-Identifier: Apache-2.0
// The walk is one piece of code; what it waits for is a parameter (DESIGN idea 2). Here it walks
// over copies that arrive cache line by cache line, with delays, and must answer as in place.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/copy_walker.hpp"
#include "tests/support/key_set.hpp"
#include "tests/support/scene.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/version_replay.hpp"
#include "tests/support/walk_recorder.hpp"

namespace espalier::test {
namespace {

std::string operation_text(const Operation& operation) {
  std::string text =
      describe(operation) + " @" + std::to_string(operation.read_version.value_or(0));
  for (const ReadItem& item : operation.items) {
    text += "\n  " + test::quoted(item.key) + " " + std::to_string(item.version) + " " +
            std::to_string(std::hash<std::string>{}(item.value));
  }
  return text;
}

// What two walkers answered, by question. Thread numbers and times differ.
std::vector<std::string> answers(std::vector<Operation>& log) {
  std::sort(log.begin(), log.end(),
            [](const Operation& a, const Operation& b) { return a.invoked < b.invoked; });
  std::vector<std::string> texts;
  for (Operation& operation : log) {
    operation.thread = 0;
    operation.invoked = operation.responded = 0;
    texts.push_back(operation_text(operation));
  }
  log.clear();
  return texts;
}

std::string random_value(Random& random, std::uint32_t bytes_max) {
  const std::uint64_t bytes = random.below(random.one_in(8) ? bytes_max : 40);
  std::string value;
  while (value.size() < bytes) value += std::to_string(random()) + " ";
  value.resize(bytes);
  return value;
}

struct CopyShape {
  const char* name;
  MapOptions options;
  std::uint32_t value_bytes_max;
};

constexpr CopyShape kShapes[] = {
    {"n512", {.node_bytes = 512, .log_bytes = 128}, 2000},
    {"n512NoLog", {.node_bytes = 512, .log_bytes = 0}, 100},
    {"n1024", {.node_bytes = 1024, .log_bytes = 256}, 5000},
    {"n8192", {}, 3000},
    {"n65536", {.node_bytes = 65536, .log_bytes = 2048}, 10'000},
    {"n512NoVersions", {.node_bytes = 512, .log_bytes = 128, .versions = false}, 2000},
};

class CopyAccessShapes : public ::testing::TestWithParam<CopyShape> {
 protected:
  void write_some(HostWalker& walker, const std::vector<std::string>& keys, Random& random,
                  std::uint64_t writes) const {
    for (; writes != 0; --writes) {
      Question question;
      question.op = random.one_in(3) ? Op::erase : Op::put;
      question.key = random.pick(keys);
      if (question.op == Op::put) {
        question.value = random_value(random, GetParam().value_bytes_max);
      }
      walker.ask(std::move(question));
    }
    walker.recorder.log().clear();
  }
  // Runs `check(scene, keys, random)` on an empty map of this shape with keys of each pattern.
  template <class Check>
  void for_each_pattern(std::uint64_t default_seed, const Check& check) const {
    const std::uint64_t seed = seed_from_environment(default_seed);
    SCOPED_TRACE(seed_text(seed));
    for (const KeyPattern pattern : kKeyPatterns) {
      SCOPED_TRACE(name(pattern));
      Random random(seed + static_cast<std::uint64_t>(pattern));
      Scene scene(GetParam().options);
      const std::vector<std::string> keys =
          make_keys(pattern, 300, scene.map->geometry.key_bytes_max, seed);
      check(scene, keys, random);
      if (HasFatalFailure()) return;
    }
  }
};

// Without writes both answer the same, at the newest and at held versions, alone and in batches;
// and no copy was wasted.
TEST_P(CopyAccessShapes, AnswersAsInPlace) {
  for_each_pattern(71, [&](Scene& scene, const std::vector<std::string>& keys, Random& random) {
    tree::MapCore& map = *scene.map;
    Clock clock;
    HostWalker host(scene.store, map, 3, clock);
    CopyWalker one(scene.store, map, 4, clock, 1, random());
    CopyWalker many(scene.store, map, 5, clock, 8, random());
    std::vector<std::unique_ptr<HeldHere>> held;
    for (int phase = 0; phase < 3; ++phase) {
      write_some(host, keys, random, scaled(600));
      if (map.options.versions) held.push_back(std::make_unique<HeldHere>(map, scene.context));
    }
    write_some(host, keys, random, scaled(300));
    for (std::uint64_t i = scaled(200); i != 0; --i) {
      const Question question = random_read(random, keys, map.geometry.key_bytes_max);
      const bool newest = held.empty() || random.one_in(2);
      const memory::HeldVersion* version = newest ? nullptr : random.pick(held)->read().held;
      host.ask(question, version);
      one.submit(question, version);
      one.drain();
      many.submit(question, version);
    }
    many.drain();
    ASSERT_EQ(host.recorder.unexpected().value_or(""), "");
    const std::vector<std::string> expected = answers(host.recorder.log());
    ASSERT_EQ(answers(one.recorder.log()), expected);
    ASSERT_EQ(answers(many.recorder.log()), expected);
  });
}

// Each level costs one node: a walk that read unrequested bytes would take detours.
TEST_P(CopyAccessShapes, AGetReadsOneNodePerLevel) {
  for_each_pattern(72, [&](Scene& scene, const std::vector<std::string>& keys, Random& random) {
    Clock clock;
    HostWalker host(scene.store, *scene.map, 3, clock);
    CopyWalker copy(scene.store, *scene.map, 4, clock, 1, random());
    write_some(host, keys, random, scaled(900));
    const std::uint64_t height = scene.map->node(scene.map->root).level() + 1;
    for (const std::string& key : keys) {
      const std::uint64_t before = copy.machine.nodes();
      copy.submit({Op::get, key, {}, {}, 0});
      copy.drain();
      ASSERT_EQ(copy.machine.nodes() - before, height) << test::quoted(key);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Nodes, CopyAccessShapes, ::testing::ValuesIn(kShapes),
                         [](const auto& shape) { return std::string(shape.param.name); });

// Many lines, and several such values in one scan: each stays only until the next is wanted.
TEST(CopyAccess, LongValuesComeWhole) {
  const std::uint64_t seed = seed_from_environment(74);
  SCOPED_TRACE(seed_text(seed));
  Scene scene;
  Clock clock;
  HostWalker host(scene.store, *scene.map, 3, clock);
  CopyWalker copy(scene.store, *scene.map, 4, clock, 2, seed);
  const std::size_t longest = kSanitized ? wire::kValueBytesMax / 64 : wire::kValueBytesMax;
  for (const std::size_t bytes : {longest, longest / 2 + 1, std::size_t{33}, std::size_t{0}}) {
    std::string value(bytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i) value[i] = static_cast<char>(i * 31 >> 3);
    host.ask({Op::put, "k" + std::to_string(bytes), {}, std::move(value), 0});
  }
  host.recorder.log().clear();
  for (const Op op : {Op::scan, Op::scan_reverse, Op::scan_floor, Op::floor}) {
    const Question question{op, op == Op::floor || op == Op::scan_floor ? "k5" : "", {}, {}, 0};
    host.ask(question);
    copy.submit(question);
    copy.drain();
  }
  EXPECT_EQ(answers(copy.recorder.log()), answers(host.recorder.log()));
}

// Writers change the map in place while one thread walks over copies; what all saw is replayed by
// version. Under a thread sanitizer nothing but the copying itself is left out of sight.
class CopyAccessConcurrency : public ::testing::TestWithParam<CopyShape> {};

TEST_P(CopyAccessConcurrency, ReadsWhatWasThereAtItsVersion) {
  const std::uint64_t seed = seed_from_environment(73);
  SCOPED_TRACE(seed_text(seed));
  Scene scene(GetParam().options);
  tree::MapCore& map = *scene.map;
  const std::vector<std::string> keys =
      make_keys(KeyPattern::nested, 60, map.geometry.key_bytes_max, seed);
  Clock clock;
  std::atomic<bool> over{false};
  std::vector<std::unique_ptr<HostWalker>> writers;
  for (std::uint32_t i = 0; i < 2; ++i) {
    writers.push_back(std::make_unique<HostWalker>(scene.store, map, 3 + i, clock));
  }
  CopyWalker reader(scene.store, map, 5, clock, 8, seed);
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < writers.size(); ++i) {
      threads.emplace_back([&, i] {
        Random random(seed + i);
        for (std::uint64_t n = 0; n < scaled(30'000) && !over; ++n) {
          const bool shrinking = n / 200 % 2 == 1;
          Question question;
          question.op = random.one_in(shrinking ? 2 : 5) ? Op::erase : Op::put;
          question.key = random.pick(keys);
          if (question.op == Op::put) {
            question.value = std::to_string(i) + "." + std::to_string(n) + ".";
            question.value += random_value(random, 500);
          }
          writers[i]->ask(std::move(question));
        }
      });
    }
    Random random(seed + 9);
    for (std::uint64_t i = steps_or(scaled(4000)); i != 0; --i) {
      Question question = random_read(random, keys, map.geometry.key_bytes_max);
      reader.submit(std::move(question));
      if (reader.walker.pending() >= 8) reader.walker.poll();
      reader.machine.turn();
    }
    reader.drain();
    over = true;
  }
  History history;
  const auto add = [&](WalkRecorder& recorder) {
    ASSERT_EQ(recorder.unexpected().value_or(""), "");
    std::ranges::move(recorder.log(), std::back_inserter(history.operations));
  };
  for (auto& writer : writers) add(writer->recorder);
  add(reader.recorder);
  EXPECT_EQ(replay_versions(history).value_or(""), "");
}

INSTANTIATE_TEST_SUITE_P(Nodes, CopyAccessConcurrency, ::testing::ValuesIn(kShapes, kShapes + 4),
                         [](const auto& shape) { return std::string(shape.param.name); });

}  // namespace
}  // namespace espalier::test

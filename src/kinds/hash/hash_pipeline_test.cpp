// SPDX-License-Identifier: Apache-2.0
// A pipeline answers as calls one by one do, whatever its distances, and while the map grows.
#include "kinds/hash/hash_pipeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "catalog/testing/recording_sink.hpp"
#include "kinds/hash/testing/hash_fixture.hpp"

namespace espalier::hash {
namespace {

struct Asked {
  Op op;
  std::string key;
  std::string value;
};

TEST(HashPipeline, AnswersInOrderWhatSingleCallsWould) {
  base::Random random(base::seed_from_environment(31));
  for (const PipelineDistances distances :
       {PipelineDistances{}, PipelineDistances{3, 2, 1}, PipelineDistances{60, 30, 7},
        PipelineDistances{31, 15, 0}}) {
    HashFixture f({.partitions = 4});
    HashPipeline pipeline(*f.map, f.thread, distances);
    std::unordered_map<std::string, std::string> model;
    for (int round = 0; round < 40; ++round) {
      std::vector<Asked> asked(random.between(0, 300));
      std::vector<Request> requests;
      for (Asked& one : asked) {
        one = {static_cast<Op>(1 + random.below(5)), std::to_string(random.below(3000)),
               std::string(random.below(1500), 'v')};
        requests.push_back({one.op, 0, requests.size(), one.key, {}, one.value});
      }
      std::size_t next = 0;
      pipeline.run(requests, [&](const Completion& done) {
        ASSERT_TRUE(done.ok);
        ASSERT_EQ(done.tag, next++);  // no other thread writes: all are released immediately
        const Asked& one = asked[done.tag];
        const auto found = model.find(one.key);
        ASSERT_EQ(done.found, found != model.end());
        if (one.op == Op::get) {
          if (done.found) {
            ASSERT_EQ(done.value, found->second);
          }
          return;
        }
        const bool applies = one.op == Op::put || (one.op == Op::insert) != done.found;
        ASSERT_EQ(done.applied, applies);
        if (!applies) return;
        if (one.op == Op::erase) {
          model.erase(one.key);
        } else {
          model[one.key] = one.value;
        }
      });
      ASSERT_EQ(next, asked.size());
    }
    EXPECT_EQ(f.faults(), "");
  }
}

// A segment that is nearly full, and not split yet: some of its bins go on elsewhere.
TEST(HashPipeline, FindsWhatLiesBehindTheBinsOfAFullSegment) {
  HashFixture f({.partitions = 1});
  constexpr std::uint64_t kKeys = 950;
  static_assert(kKeys < Partition::kSplitSlots);
  std::vector<std::string> keys;
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    keys.push_back(std::to_string(i));
    f.put(keys.back(), "v" + keys.back());
  }
  const Segment& segment = *f.map->partitions().front().all_segments().front();
  ASSERT_GT(segment.used_buckets(), 0u);
  for (const std::uint32_t in_flight : {2u, 10u, 41u}) {
    HashPipeline pipeline(*f.map, f.thread, PipelineDistances{}.within(in_flight));
    std::vector<Request> requests;
    for (std::uint64_t i = 0; i < 2 * kKeys; ++i) {
      const std::string& key = keys[i / 2];
      requests.push_back(i % 2 == 0 ? Request{Op::get, 0, i, key, {}, {}}
                                    : Request{Op::erase, 0, i, key, {}, {}});
    }
    pipeline.run(requests, [&](const Completion& done) {
      ASSERT_TRUE(done.ok && done.found) << done.tag;
      if (done.op == Op::get) {
        ASSERT_EQ(done.value, "v" + keys[done.tag / 2]);
      }
    });
    EXPECT_EQ(f.faults(), "");
    for (const std::string& key : keys) f.put(key, "v" + key);
  }
}

TEST(PipelineDistances, GrowWithTheLatencyOfMemoryWithinBounds) {
  std::uint32_t before = 0;
  for (const std::uint64_t ns : {0u, 1u, 80u, 125u, 200u, 400u, 1'000'000u}) {
    const PipelineDistances distances = PipelineDistances::of_latency(ns);
    EXPECT_GE(distances.record, before);
    before = distances.record;
    for (const std::uint32_t in_flight : {0u, 1u, 2u, 7u, 40u, 1000u}) {
      const PipelineDistances some = distances.within(in_flight);
      EXPECT_LE(some.near, some.record);
      EXPECT_LE(some.record, some.bin);
      EXPECT_EQ(some.bin, std::clamp(in_flight, 1u, distances.bin + 1) - 1);
    }
  }
  const PipelineDistances usual = PipelineDistances::of_latency(125);
  EXPECT_EQ(usual.bin, PipelineDistances{}.bin);
  EXPECT_EQ(usual.record, PipelineDistances{}.record);
  EXPECT_EQ(usual.near, PipelineDistances{}.near);
  EXPECT_LE(before, 48u);
  EXPECT_GE(PipelineDistances::of_latency(0).record, 12u);
}

// The least of five attempts: what takes the processor meanwhile does not come to all of them.
TEST(PipelineDistances, TheMachinesAreMeasuredOnce) {
  EXPECT_GT(base::line_latency_ns(), 0u);
  EXPECT_EQ(&PipelineDistances::of_machine(), &PipelineDistances::of_machine());
  EXPECT_GE(PipelineDistances::of_machine().record, 12u);
}

TEST(HashPipeline, WhatIsInTheQueueGoesOnWithLaterCalls) {
  HashFixture f;
  f.put("k", "v");
  for (const std::uint32_t in_flight : {1u, 2u, 8u, 41u, 256u}) {
    HashPipeline pipeline(*f.map, f.thread, PipelineDistances{}.within(in_flight));
    const std::size_t most = std::min<std::size_t>(in_flight, PipelineDistances{}.bin + 1);
    std::vector<Request> requests(100);
    std::vector<std::uint64_t> done;
    const auto take = [&](const Completion& completion, Handler*) {
      EXPECT_TRUE(completion.ok && completion.found);
      done.push_back(completion.tag);
    };
    for (std::size_t i = 0; i < requests.size(); ++i) {
      requests[i] = {i % 2 == 0 ? Op::get : Op::put, 0, i, "k", {}, "v"};
      pipeline.push(requests[i], nullptr, take);
      ASSERT_EQ(pipeline.pending(), std::min(i + 1, most - 1)) << in_flight << " " << i;
    }
    if (most > 1) pipeline.turn(take);
    EXPECT_EQ(done.size(), requests.size() + 2 - std::max<std::size_t>(most, 2));
    pipeline.drain(take);
    EXPECT_EQ(pipeline.pending(), 0u);
    for (std::size_t i = 0; i < done.size(); ++i) EXPECT_EQ(done[i], i);
    EXPECT_EQ(done.size(), requests.size());
  }
}

TEST(HashPipeline, ErrorsAreThoseOfTheirRequests) {
  HashFixture f;
  HashPipeline pipeline(*f.map, f.thread);
  const std::string long_key(65536, 'k');
  const std::vector<Request> requests = {{Op::get, 0, 0, "", {}, {}},
                                         {Op::put, 0, 1, long_key, {}, "v"},
                                         {Op::put, 0, 2, "good", {}, "v"}};
  std::vector<bool> ok(3);
  pipeline.run(requests, [&](const Completion& done) {
    ok[done.tag] = done.ok;
    if (!done.ok) {
      EXPECT_EQ(done.error.code, Code::key_too_long);
    }
  });
  EXPECT_EQ(ok, (std::vector<bool>{false, false, true}));
}

// What was written and waits is answered with the error, once each; what comes later finds no room.
TEST(HashPipeline, WhereRecordsAreLostNothingWaitsForThem) {
  HashFixture f;
  catalog::RecordingSink sink(catalog::RecordingSink::Durable::by_hand);
  f.parts.catalog.record_to(&sink);
  HashPipeline pipeline(*f.map, f.thread, PipelineDistances{}.within(4));
  std::vector<Request> requests(20);
  std::vector<Completion> done;
  const auto take = [&](const Completion& completion, Handler*) { done.push_back(completion); };
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i] = {Op::put, 0, i, "k", {}, "v"};
    pipeline.push(requests[i], nullptr, take);
  }
  ASSERT_GT(sink.count(), 10u);
  sink.make_durable(5);
  pipeline.turn(take);
  const std::size_t written = sink.count();
  ASSERT_EQ(done.size(), 5u);
  EXPECT_TRUE(std::ranges::all_of(done, &Completion::ok));
  sink.fail_all();
  pipeline.drain(take);
  EXPECT_EQ(pipeline.pending(), 0u);
  ASSERT_EQ(done.size(), requests.size());
  std::vector<bool> seen(requests.size());
  for (const Completion& each : std::span(done).subspan(5)) {
    EXPECT_FALSE(each.ok);
    const bool was_written = each.tag < written;
    EXPECT_EQ(each.error, was_written ? catalog::kRecordLost : (Error{Code::busy, 0, 0}));
    EXPECT_FALSE(seen[each.tag]);
    seen[each.tag] = true;
  }
  f.parts.catalog.record_to(nullptr);
}

/// A clock by which a hold of releases ends after a thousand looks at it.
std::uint64_t ticking_ns() noexcept {
  static std::uint64_t now = 0;
  return now += 1000;
}

TEST(HashPipeline, ACallerThatThrowsLeavesNoEpochExposed) {
  HashFixture f;
  HashPipeline pipeline(*f.map, f.thread);
  f.put("k", "v");
  for (const Op op : {Op::get, Op::put}) {
    const std::vector<Request> requests(50, Request{op, 0, 0, "k", {}, "v"});
    int calls = 0;
    const auto throws = [&](const Completion&) {
      if (++calls == 20) throw std::string("of the caller");
    };
    EXPECT_THROW(pipeline.run(requests, throws), std::string);
    EXPECT_EQ(f.thread.slot.exposed(), 0u);
    pipeline.run(requests, [&](const Completion& done) { EXPECT_TRUE(done.ok); });
  }
  f.map->give_back(f.thread);
  EXPECT_EQ(f.faults(), "");
}

// The caller throws at the first completion, by which time others wait for their release.
TEST(HashPipeline, EachWriteIsCompletedOnceWhateverItsCallerThrows) {
  HashFixture f;
  HashPipeline pipeline(*f.map, f.thread);
  f.map->clock().set_time(ticking_ns);
  std::vector<std::string> keys;
  for (int i = 0; i < 500; ++i) keys.push_back("key" + std::to_string(i));
  std::vector<Request> requests;
  for (const std::string& key : keys) {
    requests.push_back({Op::put, 0, requests.size(), key, {}, "v"});
  }
  ASSERT_NE(f.map->clock().hold(), 0u);
  std::vector<int> completions(keys.size());
  bool thrown = false;
  const auto done = [&](const Completion& completion) {
    ++completions[completion.tag];
    if (!std::exchange(thrown, true)) throw 1;
  };
  EXPECT_THROW(pipeline.run(requests, done), int);
  const auto written = f.map->numbers().entries;
  EXPECT_GT(written, 1u);
  pipeline.run({}, done);
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(completions[i], i < written ? 1 : 0);
}

}  // namespace
}  // namespace espalier::hash

// SPDX-License-Identifier: Apache-2.0
#include "bench/doorbell_probe.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"

namespace espalier::bench {
namespace {

// Numbers of rings around the widths of vectors, lines and words of bits.
constexpr std::uint32_t kRingNumbers[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 130};

std::string describe(const DoorbellForm& form) {
  return std::string(name(form.doorbell)) + " " + std::string(base::name(form.isa));
}

TEST(DoorbellForms, EveryDoorbellHasOneAndTheFastestComesOnce) {
  std::set<Doorbell> all;
  std::map<Doorbell, base::Isa> fastest;
  for (const DoorbellForm& form : doorbell_forms()) {
    all.insert(form.doorbell);
    fastest[form.doorbell] = std::max(fastest[form.doorbell], form.isa);
  }
  EXPECT_EQ(all.size(), 6u);
  std::set<Doorbell> best;
  for (const DoorbellForm& form : best_doorbell_forms()) {
    EXPECT_TRUE(best.insert(form.doorbell).second) << describe(form);
    EXPECT_EQ(form.isa, fastest[form.doorbell]) << describe(form);
  }
  EXPECT_EQ(best, all);
}

using News = std::map<std::uint32_t, std::uint32_t>;  // ring -> slots that it has had

struct Passed {
  std::vector<News> passes;
  std::uint64_t checksum = 0;
};

// Publishes at random between passes, the same for every form.
Passed pass_at_random(const DoorbellForm& form, std::uint32_t rings, std::uint64_t seed) {
  const RingMemory memory(form.doorbell, rings, seed);
  Passed passed;
  with_reader(form, memory, [&](auto& reader) {
    std::vector<std::uint32_t> counts;
    for (std::uint32_t ring = 0; ring < rings; ++ring) counts.push_back(memory.start(ring));
    base::Random random(seed);
    for (int pass = 0; pass < 40; ++pass) {
      const std::uint64_t slots = random.below(3) == 0 ? 0 : random.below(2 * rings + 1);
      for (std::uint64_t i = 0; i < slots; ++i) {
        const auto ring = static_cast<std::uint32_t>(random.below(rings));
        memory.publish(ring, counts[ring]++, random());
      }
      News news;
      const auto emptied = [&](std::uint32_t ring, std::uint32_t count) {
        EXPECT_TRUE(news.emplace(ring, count - memory.start(ring)).second);
      };
      EXPECT_EQ(reader.pass(emptied), slots) << describe(form) << ", rings " << rings;
      passed.passes.push_back(news);
    }
    passed.checksum = reader.checksum();
  });
  return passed;
}

TEST(DoorbellForms, AllFindWhatTheScalarOneFinds) {
  for (const std::uint32_t rings : kRingNumbers) {
    const Passed oracle = pass_at_random({Doorbell::tail4, base::Isa::scalar}, rings, rings);
    for (const DoorbellForm& form : doorbell_forms()) {
      const Passed passed = pass_at_random(form, rings, rings);
      EXPECT_EQ(passed.passes, oracle.passes) << describe(form) << ", rings " << rings;
      EXPECT_EQ(passed.checksum, oracle.checksum) << describe(form) << ", rings " << rings;
    }
  }
}

TEST(DoorbellForms, FindEachRingAloneAndNothingElse) {
  for (const DoorbellForm& form : doorbell_forms()) {
    for (const std::uint32_t rings : {1u, 17u, 70u}) {
      const RingMemory memory(form.doorbell, rings, 3);
      with_reader(form, memory, [&](auto& reader) {
        for (std::uint32_t ring = 0; ring < rings; ++ring) {
          memory.publish(ring, memory.start(ring), ring);
          std::vector<std::uint32_t> found;
          reader.pass([&](std::uint32_t at, std::uint32_t) { found.push_back(at); });
          EXPECT_EQ(found, std::vector{ring}) << describe(form);
          EXPECT_EQ(reader.pass([](std::uint32_t, std::uint32_t) {}), 0u) << describe(form);
        }
      });
    }
  }
}

TEST(DoorbellForms, CountsMayWrapAround) {
  // Tails are compared for being different, never for order.
  const DoorbellForm form{Doorbell::tail4, base::Isa::scalar};
  const RingMemory memory(form.doorbell, 2, 1);
  SeenCounts seen(memory, 4);
  seen.set(1, 0xffffffffu);
  memory.announce(1, 0);
  std::vector<std::uint32_t> found;
  ScalarTails<4>::scan(memory, seen, [&](std::uint32_t ring) { found.push_back(ring); });
  EXPECT_EQ(found, std::vector{1u});
}

DoorbellPlan tiny(const DoorbellForm& form) {
  DoorbellPlan plan;
  plan.form = form;
  plan.rings = 20;
  plan.ops = 600;
  plan.seed = 4;
  plan.seconds_max = 60;  // however busy the machine is
  return plan;
}

TEST(DoorbellProbe, EveryFormAnswersAlike) {
  std::map<std::string, std::set<std::uint64_t>> checksums;
  const auto add = [&](const char* what, const DoorbellPlan& plan, const DoorbellResult& result) {
    EXPECT_TRUE(result.complete) << what << ", " << describe(plan.form);
    EXPECT_EQ(result.ops, plan.ops) << what << ", " << describe(plan.form);
    EXPECT_GT(result.ns_per_op(), 0);
    EXPECT_GT(result.ops_per_s(), 0);
    checksums[what].insert(result.checksum);
  };
  for (const DoorbellForm& form : doorbell_forms()) {
    DoorbellPlan plan = tiny(form);
    add("scan", plan, scan_empty(plan));
    const DoorbellResult round_trips = notify(plan);
    EXPECT_EQ(round_trips.latencies.count(), plan.ops);
    add("notify", plan, round_trips);
    plan.window = 32;
    add("notify", plan, notify(plan));
    plan.writers = 3;
    add("stream", plan, stream(plan));
    add("unread", plan, announce_unread(plan, true));
  }
  for (const auto& [what, values] : checksums) EXPECT_EQ(values.size(), 1u) << what;
}

TEST(DoorbellProbe, BellsAloneCountInTailsAndStayInBits) {
  DoorbellPlan plan = tiny({Doorbell::tail8, base::Isa::scalar});
  plan.writers = 2;
  EXPECT_EQ(announce_unread(plan, false).checksum, plan.ops);
  plan.form.doorbell = Doorbell::bitmap;
  EXPECT_EQ(announce_unread(plan, false).checksum, 2u);
}

TEST(DoorbellProbe, GivesUpWhenTimeIsUp) {
  DoorbellPlan plan = tiny({Doorbell::tail4, base::Isa::scalar});
  plan.ops = std::uint64_t{1} << 40;
  plan.seconds_max = 0.01;
  const DoorbellResult result = notify(plan);
  EXPECT_FALSE(result.complete);
  EXPECT_LT(result.ops, plan.ops);
}

}  // namespace
}  // namespace espalier::bench

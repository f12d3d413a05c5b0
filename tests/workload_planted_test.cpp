// SPDX-License-Identifier: Apache-2.0
// The concurrent workload detects broken rules of the map: with each of these bugs planted, one of
// a few runs is refused, and without any bug none is.
//
// Threads yield at critical moments, so that races occur. Bugs that only make a walk loop, or that
// a workload meets too seldom, have tests of their own beside the code that they break.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <thread>

#include "kinds/map/node/planted_tree_bugs.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/store.hpp"
#include "tests/support/workload.hpp"

namespace espalier::test {
namespace {

using tree::Bug;

struct Planted {
  const char* name;
  Bug bug;
  std::uint32_t value_bytes_max = 80;
};

// Inline values of a node of 512 bytes. A reader of a superseded node would follow references to
// values whose memory is gone, and crash instead of failing the check.
constexpr std::uint32_t kInlineOnly = 32;

void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.name; }

std::optional<std::string> run_once(std::uint64_t seed, std::uint32_t value_bytes_max = 80) {
  Store store = open_store();
  auto map = store.create_map("map", {.node_bytes = 512, .log_bytes = 128});
  if (!map) return "no map: " + message(map.error());
  WorkloadOptions options;
  options.seed = seed;
  options.value_bytes_max = value_bytes_max;
  options.pipelines = 2;
  options.operations = 2000;
  options.rounds = 3;
  options.on_thread = [] {
    tree::on_moment = [moments = 0u](tree::Moment) mutable {
      if (++moments % 8 == 0) std::this_thread::yield();
    };
  };
  return run_and_check(*map, options);
}

constexpr std::uint64_t kRuns = 200;

TEST(WorkloadConcurrency, AcceptsTheMapAsItIs) {
  for (std::uint64_t seed = 1; seed <= scaled(10); ++seed) {
    ASSERT_EQ(run_once(seed).value_or(""), "");
  }
}

class WorkloadPlantedConcurrency : public ::testing::TestWithParam<Planted> {};

TEST_P(WorkloadPlantedConcurrency, Refuses) {
  const base::Planted planted(GetParam().bug);
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    if (run_once(seed, GetParam().value_bytes_max)) return;
  }
  FAIL() << kRuns << " runs were accepted";
}

[[maybe_unused]] std::string bug_name(const ::testing::TestParamInfo<Planted>& info) {
  return info.param.name;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(WorkloadPlantedConcurrency);

// Some of these bugs are data races, which a race detector would report before the checkers do.
#if !defined(__SANITIZE_THREAD__)
INSTANTIATE_TEST_SUITE_P(
    Bugs, WorkloadPlantedConcurrency,
    ::testing::Values(Planted{"log_not_prefilled", Bug::log_not_prefilled},
                      Planted{"value_freed_at_once", Bug::value_freed_at_once},
                      Planted{"answer_unreleased", Bug::answer_unreleased},
                      Planted{"acknowledge_before_release", Bug::acknowledge_before_release},
                      Planted{"no_predecessor", Bug::no_predecessor},
                      Planted{"floor_stays_in_leaf", Bug::floor_stays_in_leaf},
                      Planted{"ignore_created", Bug::ignore_created},
                      Planted{"ignore_superseded", Bug::ignore_superseded, kInlineOnly},
                      Planted{"batch_in_two_versions", Bug::batch_in_two_versions},
                      Planted{"conditions_before_lock", Bug::conditions_before_lock}),
    bug_name);
#endif

}  // namespace
}  // namespace espalier::test

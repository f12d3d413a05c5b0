// SPDX-License-Identifier: Apache-2.0
#include "base/cpu.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace espalier::base {
namespace {

TEST(Cpu, FeaturesComeInTheirUsualOrder) {
  const CpuFeatures& features = cpu_features();
  if (features.avx512bw || features.avx512vl || features.avx512vbmi) {
    EXPECT_TRUE(features.avx512f);
  }
  EXPECT_TRUE(features.avx2 || !features.avx512f);
  EXPECT_TRUE(features.sse42 || !features.avx2);
}

TEST(Cpu, NamesOfFormsGoBothWays) {
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) EXPECT_EQ(parse_isa(name(isa)), isa);
  EXPECT_EQ(parse_isa(""), std::nullopt);
  EXPECT_EQ(parse_isa("AVX2"), std::nullopt);
}

TEST(Cpu, TheBestFormNeedsAllItsFeaturesAndObeysTheCap) {
  CpuFeatures all{.sse42 = true,
                  .bmi2 = true,
                  .avx2 = true,
                  .avx512f = true,
                  .avx512bw = true,
                  .avx512vl = true,
                  .avx512vbmi = true,
                  .waitpkg = true};
  EXPECT_EQ(best_isa(all, Isa::avx512), Isa::avx512);
  EXPECT_EQ(best_isa(all, Isa::avx2), Isa::avx2);
  EXPECT_EQ(best_isa(all, Isa::scalar), Isa::scalar);
  for (bool CpuFeatures::*missing : {&CpuFeatures::avx512f, &CpuFeatures::avx512bw,
                                     &CpuFeatures::avx512vl, &CpuFeatures::avx512vbmi}) {
    CpuFeatures some = all;
    some.*missing = false;
    EXPECT_EQ(best_isa(some, Isa::avx512), Isa::avx2);
  }
  for (bool CpuFeatures::*missing : {&CpuFeatures::avx2, &CpuFeatures::bmi2}) {
    CpuFeatures some = all;
    some.*missing = false;
    EXPECT_EQ(best_isa(some, Isa::avx512), Isa::scalar);
  }
}

TEST(Cpu, TheChoiceIsOneThatTheMachineHas) {
  EXPECT_LE(isa(), best_isa(cpu_features(), Isa::avx512));
}

TEST(Cpu, PinningConfinesOnlyTheCallingThread) {
  const auto cores = usable_cores();
  ASSERT_FALSE(cores.empty());
  EXPECT_TRUE(std::is_sorted(cores.begin(), cores.end()));
  std::jthread([&] {
    ASSERT_TRUE(pin_this_thread(cores.back()).has_value());
    EXPECT_EQ(usable_cores(), std::vector<unsigned>{cores.back()});
  }).join();
  EXPECT_EQ(usable_cores(), cores);
}

TEST(Cpu, PinningToACoreThatIsNotThereFails) {
  for (const unsigned core : {1023u, 1024u, ~0u}) {
    const auto pinned = pin_this_thread(core);
    ASSERT_FALSE(pinned.has_value());
    EXPECT_EQ(pinned.error().code, Code::system);
  }
}

TEST(CpuConcurrency, PingPongMeasuresSomething) {
  const auto cores = usable_cores();
  const unsigned second = cores.size() > 1 ? cores[1] : cores[0];
  const auto measured = measure_ping_pong(cores[0], second, 5, 100);
  if (cores.size() == 1) {
    EXPECT_EQ(measured.error().code, Code::invalid_argument);
    return;
  }
  ASSERT_TRUE(measured.has_value()) << message(measured.error());
  EXPECT_GT(measured->min_ns, 0);
  EXPECT_LE(measured->min_ns, measured->median_ns);
  EXPECT_LE(measured->median_ns, measured->max_ns);
}

TEST(CpuConcurrency, PingPongRefusesWhatCannotBeMeasured) {
  const unsigned core = usable_cores().front();
  EXPECT_EQ(measure_ping_pong(core, core).error().code, Code::invalid_argument);
  EXPECT_EQ(measure_ping_pong(core, core + 1, 0).error().code, Code::invalid_argument);
  EXPECT_EQ(measure_ping_pong(core, 1023, 2, 10).error().code, Code::system);
}

}  // namespace
}  // namespace espalier::base

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "dataplane/installed_function.hpp"
#include "dataplane/testing/table_checks.hpp"

namespace espalier::dataplane {
namespace {

TEST(InstalledFunctionConcurrency, ABurstMeetsAllOfAChangeOrNothing) {
  EXPECT_EQ(changes_under_frames(100), "");
}

TEST(InstalledFunctionConcurrency, ReadersComeAndGo) {
  InstalledFunction installed;
  for (std::size_t i = 0; i < 3 * InstalledFunction::kReadersMax; ++i) {
    auto reader = installed.make_reader();
    std::vector<std::byte> frame(60);
    reader.with([&](const PacketFunction& function) {
      EXPECT_EQ(function.process(frame).outcome, Outcome::passed);
    });
  }
  EXPECT_EQ(installed.generation(), 0u);
  installed.install({});
  EXPECT_EQ(installed.generation(), 1u);
}

}  // namespace
}  // namespace espalier::dataplane

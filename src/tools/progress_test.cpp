// SPDX-License-Identifier: Apache-2.0
#include "tools/progress.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "tools/testing/memory_files.hpp"

namespace espalier::tools {
namespace {

/// What a progress line leaves on `err` when the clock goes `tick_ns` at each reading.
std::string shown(bool terminal, std::uint64_t tick_ns) {
  MemorySource input("");
  MemoryFiles files;
  std::ostringstream out;
  std::ostringstream err;
  std::uint64_t clock_ns = 0;
  Environment environment{.input = input,
                          .out = out,
                          .err = err,
                          .files = files,
                          .err_is_terminal = terminal,
                          .now_ns = [&] { return clock_ns += tick_ns; }};
  {
    Progress progress(environment, "loading", 10'000);
    for (std::uint64_t i = 0; i < 5000; ++i) progress.update(2 * i, i);
  }
  return err.str();
}

TEST(Progress, TellsShareRateAndTimeLeft) {
  EXPECT_EQ(Progress::line("loading", 1 << 20, 4 << 20, 50'000, 2.0),
            "loading: 50,000 records, 1.0 MiB of 4.0 MiB (25 %), 25,000/s, 512.0 KiB/s, 0:06 left");
  EXPECT_EQ(Progress::line("loading", 1024, std::nullopt, 10, 1.0),
            "loading: 10 records, 1.0 KiB of ?, 10/s, 1.0 KiB/s");
  EXPECT_EQ(Progress::line("loading", 0, 0, 0, 0.0), "loading: 0 records, 0 B of 0 B, 0/s, 0 B/s");
  EXPECT_EQ(Progress::line("loading", 20, 10, 1, 1.0),
            "loading: 1 records, 20 B of 10 B (100 %), 1/s, 20 B/s");
}

TEST(Progress, CountsItems) {
  EXPECT_EQ(Progress::items_line("checking", 2500, 10'000, 0.5),
            "checking: 2,500 of 10,000 items (25 %), 5,000/s, 0:01 left");
  EXPECT_EQ(Progress::items_line("checking", 0, 0, 0), "checking: 0 of 0 items, 0/s");
  EXPECT_EQ(Progress::items_line("checking", 12, 10, 1), "checking: 12 of 12 items (100 %), 12/s");
}

TEST(Progress, IsSilentOffATerminalAndForShortWork) {
  EXPECT_EQ(shown(false, 1'000'000'000), "");
  EXPECT_EQ(shown(true, 1), "");
}

TEST(Progress, APieceIsToldAtOnce) {
  MemorySource input("");
  MemoryFiles files;
  std::ostringstream out;
  std::ostringstream err;
  std::uint64_t clock_ns = 0;
  Environment environment{.input = input,
                          .out = out,
                          .err = err,
                          .files = files,
                          .err_is_terminal = true,
                          .now_ns = [&] { return clock_ns += 500'000'000; }};
  Progress progress(environment, "t.csv", 4096);
  progress.update_piece(1024, 10);
  EXPECT_EQ(err.str(),
            "\r\x1b[Kt.csv: 10 records, 1.0 KiB of 4.0 KiB (25 %), 20/s, 2.0 KiB/s, 0:01 left");
}

TEST(Progress, WipesItsLine) {
  const std::string text = shown(true, 1'000'000'000);
  EXPECT_TRUE(text.starts_with("\r\x1b[Kloading: "));
  EXPECT_TRUE(text.ends_with("\r\x1b[K"));
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace espalier::tools

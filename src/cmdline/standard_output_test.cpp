// SPDX-License-Identifier: Apache-2.0
#include "cmdline/standard_output.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <csignal>
#include <ostream>
#include <string>

namespace espalier::cmdline {
namespace {

TEST(StandardOutput, WritesWhatItIsGiven) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string text(30'000, 'x');
  {
    DescriptorBuffer buffer(ends[1]);
    std::ostream out(&buffer);
    out << text << 'y' << std::flush;
    EXPECT_TRUE(out.good());
    EXPECT_EQ(buffer.error_number(), 0);
  }
  ::close(ends[1]);
  std::string seen;
  char piece[4096];
  for (ssize_t count; (count = ::read(ends[0], piece, sizeof piece)) > 0;) {
    seen.append(piece, static_cast<std::size_t>(count));
  }
  ::close(ends[0]);
  EXPECT_EQ(seen, text + 'y');
}

TEST(StandardOutput, KnowsThatTheReaderWentAway) {
  const auto old = std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  DescriptorBuffer buffer(ends[1]);
  std::ostream out(&buffer);
  out << std::string(100'000, 'x');
  EXPECT_FALSE(out.good());
  EXPECT_EQ(buffer.error_number(), EPIPE);
  ::close(ends[1]);
  std::signal(SIGPIPE, old);
}

TEST(StandardOutput, KnowsThatTheDiskIsFull) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  DescriptorBuffer buffer(full);
  std::ostream out(&buffer);
  out << "x" << std::flush;
  EXPECT_FALSE(out.good());
  EXPECT_EQ(buffer.error_number(), ENOSPC);
  ::close(full);
}

}  // namespace
}  // namespace espalier::cmdline

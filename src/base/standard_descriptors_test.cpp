// SPDX-License-Identifier: Apache-2.0
#include "base/standard_descriptors.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/child_process.hpp"

namespace espalier::base {
namespace {

// In a child without the standard descriptor `closed`; -1: without any.
template <class Holds>
bool in_child_without(int closed, const Holds& holds) {
  const pid_t child = ::fork();
  if (child != 0) return wait_for_child(child) == 7;
  for (int number = 0; number <= 2; ++number) {
    if (closed < 0 || closed == number) ::close(number);
  }
  ::_exit(holds() ? 7 : 1);
}

bool is_null(int number) {
  struct stat facts {};
  struct stat null {};
  return ::fstat(number, &facts) == 0 && ::stat("/dev/null", &null) == 0 &&
         facts.st_rdev == null.st_rdev;
}

TEST(StandardDescriptors, AreOpenedWhereTheyAreClosed) {
  for (int closed = -1; closed <= 2; ++closed) {
    EXPECT_TRUE(in_child_without(closed, [&] {
      open_standard_descriptors();
      bool all = true;
      for (int number = 0; number <= 2; ++number) {
        if (closed < 0 || closed == number) all = all && is_null(number);
      }
      const int next = ::dup(0);
      return all && next > 2;
    })) << closed;
  }
}

TEST(StandardDescriptors, AreNoBetterThanClosedOnes) {
  EXPECT_TRUE(in_child_without(-1, [] {
    open_standard_descriptors();
    char byte = 0;
    const bool unread = ::read(0, &byte, 1) < 0 && errno == EBADF;
    return unread && ::write(1, "x", 1) < 0 && errno == EBADF && ::write(2, "x", 1) < 0;
  }));
}

TEST(StandardDescriptors, NothingElseTakesTheirNumbers) {
  for (int closed = -1; closed <= 2; ++closed) {
    EXPECT_TRUE(in_child_without(closed, [] {
      const int made = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
      const int above = above_standard_descriptors(made);
      return made <= 2 && above > 2 && ::fcntl(made, F_GETFD) < 0 &&
             ::fcntl(above, F_GETFD) == FD_CLOEXEC;
    })) << closed;
  }
  EXPECT_EQ(above_standard_descriptors(-1), -1);
  EXPECT_EQ(above_standard_descriptors(17), 17);
}

}  // namespace
}  // namespace espalier::base

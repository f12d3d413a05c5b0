// SPDX-License-Identifier: Apache-2.0
#include "base/fork_mark.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <mutex>

#include "base/child_process.hpp"
#include "base/uninherited.hpp"
#include "base/until_fork.hpp"

namespace espalier::base {
namespace {

// Runs `holds` in a child, and says whether it did.
template <class Holds>
bool in_child(const Holds& holds) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(holds() ? 7 : 1);
  return wait_for_child(child) == 7;
}

TEST(ForkMark, TellsCopiesFromWhatWasMade) {
  const ForkMark mark;
  EXPECT_FALSE(mark.is_copy());
  EXPECT_TRUE(in_child([&] {
    const ForkMark own;
    const ForkMark moved = mark;
    return mark.is_copy() && moved.is_copy() && !own.is_copy() &&
           in_child([&] { return mark.is_copy() && own.is_copy(); });
  }));
  EXPECT_FALSE(mark.is_copy());
}

TEST(ForkMark, CopiesAreNotDestroyed) {
  struct Counted {
    explicit Counted(int& count) : destroyed(count) {}
    ~Counted() { ++destroyed; }
    int& destroyed;
  };
  int destroyed = 0;
  auto counted = make_shared_until_fork<Counted>(destroyed);
  EXPECT_TRUE(in_child([&] {
    counted.reset();
    make_shared_until_fork<Counted>(destroyed).reset();
    return destroyed == 1;
  }));
  counted.reset();
  EXPECT_EQ(destroyed, 1);
}

TEST(PerProcess, AChildHasOneOfItsOwn) {
  struct Guarded {
    std::mutex mutex;
    int value = 1;
  };
  static constinit PerProcess<Guarded> one;
  Guarded& ours = one.get();
  ours.value = 2;
  EXPECT_EQ(&one.get(), &ours);
  const std::lock_guard lock(ours.mutex);
  EXPECT_TRUE(in_child([&] {
    Guarded& own = one.get();
    const std::lock_guard another(own.mutex);
    return &own != &ours && own.value == 1 && &one.get() == &own;
  }));
  EXPECT_EQ(one.get().value, 2);
}

bool is_open(int number) { return ::dup2(number, number) == number; }

TEST(Uninherited, IsClosedInChildren) {
  int ends[2];
  int others[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, others), 0);
  close_in_children(ends[0]);
  close_in_children(others[0]);
  inherit_again(others[0]);
  EXPECT_TRUE(
      in_child([&] { return !is_open(ends[0]) && is_open(ends[1]) && is_open(others[0]); }));
  EXPECT_EQ(::write(ends[0], "x", 1), 1);
  inherit_again(ends[0]);
  for (const int number : {ends[0], ends[1], others[0], others[1]}) ::close(number);
}

}  // namespace
}  // namespace espalier::base

// SPDX-License-Identifier: Apache-2.0
#include "base/process_id.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "base/child_process.hpp"

namespace espalier::base {
namespace {

std::string line(const std::string& name, const std::string& state, const std::string& start) {
  std::string text = "42 (" + name + ") " + state;
  for (int field = 4; field < 22; ++field) text += " " + std::to_string(field);
  return text + " " + start + " 23 24\n";
}

TEST(ProcessStat, ReadsStateAndStartTime) {
  const auto stat = parse_process_stat(line("espalier", "S", "123456"));
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->start_ticks, 123456u);
}

TEST(ProcessStat, IsNotFooledByTheName) {
  for (const char* name : {"a b", ")", "x) Z 1 2 (", "", "((("}) {
    const auto stat = parse_process_stat(line(name, "R", "77"));
    ASSERT_TRUE(stat) << name;
    EXPECT_EQ(stat->state, 'R');
    EXPECT_EQ(stat->start_ticks, 77u);
  }
}

TEST(ProcessStat, RefusesWhatIsNone) {
  EXPECT_EQ(parse_process_stat("").error(), (Error{Code::corrupt, 0, 1}));
  EXPECT_EQ(parse_process_stat("1 (x").error(), (Error{Code::corrupt, 0, 1}));
  EXPECT_EQ(parse_process_stat("1 (x) S 1 2 3").error(), (Error{Code::corrupt, 0, 2}));
  EXPECT_EQ(parse_process_stat(line("x", "S", "y")).error(), (Error{Code::corrupt, 0, 3}));
}

TEST(ProcessId, NamesThisProcess) {
  const auto self = this_process();
  ASSERT_TRUE(self);
  EXPECT_EQ(self->pid(), static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(*this_process(), *self);
  EXPECT_FALSE(has_ended(*self));
}

TEST(ProcessId, AnotherProcessWithThisPidIsAnother) {
  ProcessId other = *this_process();
  other.bits ^= 1;  // started at another time
  EXPECT_TRUE(has_ended(other));
}

TEST(ProcessId, AChildHasEndedEvenBeforeItIsWaitedFor) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto self = this_process();
    const std::uint64_t bits = self ? self->bits : 0;
    if (::write(ready[1], &bits, sizeof(bits)) != sizeof(bits)) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  ProcessId id;
  ASSERT_EQ(::read(ready[0], &id.bits, sizeof(id.bits)), static_cast<ssize_t>(sizeof(id.bits)));
  EXPECT_EQ(id.pid(), static_cast<std::uint32_t>(child));
  EXPECT_FALSE(has_ended(id));

  ASSERT_EQ(::kill(child, SIGKILL), 0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(has_ended(id));  // a zombie
  ASSERT_EQ(wait_for_child(child), -SIGKILL);
  EXPECT_TRUE(has_ended(id));  // gone
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace espalier::base

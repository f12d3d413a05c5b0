// SPDX-License-Identifier: Apache-2.0
// Logs of processes that are killed, in a folder of the file system.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/random.hpp"
#include "base/temporary_folder.hpp"
#include "log/mapped_folder.hpp"
#include "log/posix_folder.hpp"
#include "log/testing/small_log.hpp"

namespace espalier::log {
namespace {

/// Runs a function in a child, which ends with what it returns.
template <class Body>
pid_t in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  return child;
}

int status_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(LogProcess, AnotherProcessIsRefused) {
  const base::TemporaryFolder temporary;
  PosixFolder folder(temporary.string());
  const auto opens = [&] {
    const auto log = Log::open(folder, small_options(), ReadRecords().apply());
    if (log) return 0;
    return log.error().fault == LogFault::locked ? 1 : 2;
  };
  {
    const auto log = Log::open(folder, small_options(), ReadRecords().apply());
    ASSERT_TRUE(log);
    const int status = status_of(in_child(opens));
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  }
  const int status = status_of(in_child(opens));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

/// What record n is.
std::string text_of(std::uint64_t sequence) {
  return std::string(sequence * 37 % 5000, static_cast<char>('a' + sequence % 26));
}

/// Appends until it is killed, and says each time up to which record all is durable.
int write_for_ever(LogFolder& folder, int said) {
  LogOptions options = small_options();
  options.writer.flush_bytes_max = 4 * kUnitBytes;
  options.writer.segments_max = 1000;
  options.threads = true;
  const auto log = Log::open(folder, options, ReadRecords().apply());
  if (!log) return 1;
  LogWriter& writer = (*log)->writer();
  while (true) {
    std::uint64_t last = 0;
    for (int i = 0; i < 5; ++i) last = append(writer, text_of(writer.queue().next()));
    if (!writer.acknowledgements().wait(last)) return 2;
    if (::write(said, &last, sizeof last) != sizeof last) return 3;
  }
}

/// Kills some, and reads what they have left.
void kill_some(LogFolder& folder) {
  base::Random random(base::seed_from_environment(7));
  std::uint64_t acknowledged = 0;
  for (int life = 0; life < 5; ++life) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = in_child([&] { return write_for_ever(folder, ends[1]); });
    ::close(ends[1]);
    const std::uint64_t enough = acknowledged + 1 + random.below(150);
    std::uint64_t said = 0;
    while (::read(ends[0], &said, sizeof said) == sizeof said) {
      acknowledged = said;
      if (said >= enough) ::kill(child, SIGKILL);
    }
    ::close(ends[0]);
    const int status = status_of(child);
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
    ReadRecords read;
    const auto log = Log::open(folder, small_options(), read.apply());
    ASSERT_TRUE(log) << message(log.error());
    EXPECT_GE(read.texts().size(), acknowledged);
    for (std::size_t i = 0; i < read.texts().size(); ++i) {
      ASSERT_EQ(read.texts()[i], text_of(i + 1)) << i;
    }
    acknowledged = read.texts().size();
  }
}

TEST(LogProcess, WhatAKilledOneHasSaidIsThere) {
  const base::TemporaryFolder temporary;
  PosixFolder folder(temporary.string());
  kill_some(folder);
}

TEST(LogProcess, WhatAKilledOneHasStoredInMappedFilesIsThere) {
  const base::TemporaryFolder temporary("/dev/shm");
  const auto folder = MappedFolder::at(temporary.string());
  if (!folder) GTEST_SKIP() << "there is no tmpfs at /dev/shm";
  kill_some(**folder);
}

}  // namespace
}  // namespace espalier::log

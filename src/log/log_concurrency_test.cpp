// SPDX-License-Identifier: Apache-2.0
// Threads that append, wait and remove, over the group commit of one thread.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <semaphore>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/temporary_folder.hpp"
#include "log/posix_folder.hpp"
#include "log/testing/small_log.hpp"

namespace espalier::log {
namespace {

constexpr int kThreads = 4;
constexpr int kEach = 60;

LogOptions threaded_options() {
  LogOptions options = small_options();
  options.threads = true;
  return options;
}

/// Asks again while there is no room.
std::uint64_t append_patiently(LogWriter& writer, std::string_view text) {
  while (true) {
    const auto room = writer.reserve(text.size());
    if (!room) {
      EXPECT_EQ(room.error().code, Code::busy);
      std::this_thread::yield();
      continue;
    }
    std::memcpy(room->data(), text.data(), text.size());
    return writer.append(*room);
  }
}

/// Waits for its turn.
struct BlockingWaiter final : RoomWaiter {
  void complete(Result<std::span<std::byte>> room) noexcept override {
    got = room;
    done.release();
  }
  Result<std::span<std::byte>> got;
  std::binary_semaphore done{0};
};

void run_threads(const std::function<void(int)>& each) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) threads.emplace_back(each, thread);
  for (std::thread& thread : threads) thread.join();
}

TEST(LogConcurrency, EachWriterFindsItsRecordsInOrder) {
  const base::TemporaryFolder temporary;
  PosixFolder folder(temporary.string());
  std::map<std::uint64_t, std::string> appended;
  {
    auto log = Log::open(folder, threaded_options(), ReadRecords().apply());
    ASSERT_TRUE(log);
    LogWriter& writer = (*log)->writer();
    std::mutex mutex;
    run_threads([&](int thread) {
      std::uint64_t before = 0;
      for (int i = 0; i < kEach; ++i) {
        const std::string text = std::to_string(thread) + ":" + std::to_string(i);
        const std::uint64_t sequence = append_patiently(writer, text);
        EXPECT_GT(sequence, before);
        before = sequence;
        EXPECT_TRUE(writer.acknowledgements().wait(sequence));
        EXPECT_GE(writer.durable(), sequence);
        const std::scoped_lock lock(mutex);
        appended[sequence] = text;
      }
    });
  }
  ReadRecords read;
  const auto log = Log::open(folder, threaded_options(), read.apply());
  ASSERT_TRUE(log) << message(log.error());
  ASSERT_EQ(read.texts().size(), appended.size());
  for (std::size_t i = 0; i < read.texts().size(); ++i) EXPECT_EQ(read.texts()[i], appended[i + 1]);
}

TEST(LogConcurrency, CallbacksComeInOrderAndOneAtATime) {
  FaultyFolder folder(1);
  std::uint64_t last = 0;  // of callbacks alone, which are no race
  std::atomic<int> count = 0;
  {
    const auto log = Log::open(folder, threaded_options(), ReadRecords().apply());
    ASSERT_TRUE(log);
    LogWriter& writer = (*log)->writer();
    std::mutex order;
    run_threads([&](int) {
      for (int i = 0; i < kEach; ++i) {
        const std::scoped_lock lock(order);  // else a later one may be durable before this is asked
        const std::uint64_t sequence = append_patiently(writer, "text");
        writer.acknowledgements().when_durable(sequence, [&, sequence](const LogError* error) {
          EXPECT_EQ(error, nullptr);
          EXPECT_EQ(sequence, ++last);
          ++count;
        });
      }
    });
    ASSERT_TRUE((*log)->close());
  }
  EXPECT_EQ(count, kThreads * kEach);
}

/// Short records of all other threads keep the log full while one appends ten long ones.
template <class AppendLong>
void expect_long_ones_find_room(const AppendLong& append_long) {
  FaultyFolder folder(1);
  LogOptions options = threaded_options();
  options.writer.held_bytes_max = 2000;
  options.writer.segments_max = 100'000;
  const auto log = Log::open(folder, options, ReadRecords().apply());
  ASSERT_TRUE(log);
  LogWriter& writer = (*log)->writer();
  std::atomic<bool> done = false;
  run_threads([&](int thread) {
    while (thread != 0 && !done) append_patiently(writer, std::string(100, 'x'));
    for (int i = 0; thread == 0 && i < 10; ++i) append_long(writer);
    done = true;
  });
  EXPECT_TRUE((*log)->close());
}

TEST(LogConcurrency, LongRecordsFindRoomAmongShortOnes) {
  expect_long_ones_find_room([](LogWriter& writer) {
    BlockingWaiter waiter;
    writer.room().wait(waiter, 5000);
    waiter.done.acquire();
    if (waiter.got) writer.append(*waiter.got);
    EXPECT_TRUE(waiter.got);
  });
}

// Requests of a node do not wait in a queue: they ask again.
TEST(LogConcurrency, LongRecordsThatAskAgainFindRoomAmongShortOnes) {
  expect_long_ones_find_room(
      [](LogWriter& writer) { append_patiently(writer, std::string(5000, 'y')); });
}

TEST(LogConcurrency, SegmentsGoWhileOthersWrite) {
  FaultyFolder folder(1);
  LogOptions options = threaded_options();
  options.writer.held_bytes_max = 1 << 14;
  options.writer.segments_max = 3;
  std::uint64_t removed = 1;
  {
    const auto log = Log::open(folder, options, ReadRecords().apply());
    ASSERT_TRUE(log);
    LogWriter& writer = (*log)->writer();
    std::atomic<bool> done = false;
    std::thread remover([&] {
      while (!done) {
        removed = writer.durable() + 1;
        EXPECT_TRUE(writer.remove_below(removed));
        std::this_thread::yield();
      }
    });
    run_threads([&](int) {
      for (int i = 0; i < kEach; ++i) append_patiently(writer, std::string(1000, 'x'));
    });
    EXPECT_TRUE(writer.acknowledgements().wait(kThreads * kEach));
    done = true;
    remover.join();
    EXPECT_LT(writer.segments().segments().front().first_sequence, removed + 1);
  }
  ReadRecords read;
  options.recovery.from = removed;
  const auto log = Log::open(folder, options, read.apply());
  ASSERT_TRUE(log) << message(log.error());
  EXPECT_EQ(read.texts().size(), kThreads * kEach + 1 - removed);
}

TEST(LogConcurrency, AnErrorReachesAllWhoWait) {
  FaultyFolder folder(1);
  const auto log = Log::open(folder, threaded_options(), ReadRecords().apply());
  ASSERT_TRUE(log);
  LogWriter& writer = (*log)->writer();
  folder.crash_in(20);
  run_threads([&](int) {
    while (true) {
      const auto room = writer.reserve(8);
      if (!room) break;
      const std::uint64_t sequence = writer.append(*room);
      if (!writer.acknowledgements().wait(sequence)) break;
    }
  });
  const auto error = writer.acknowledgements().error();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->error.code, Code::system);
  EXPECT_EQ(error->sequence, writer.durable() + 1);
}

TEST(LogConcurrency, MemoryThatRunsOutInAThreadReachesAllWhoWait) {
  constexpr std::size_t kRecords = 1000;
  FaultyFolder folder(1);
  LogOptions options = threaded_options();
  options.writer.segments_max = kRecords;  // at its bound a log would have no room, for good
  const auto log = Log::open(folder, options, ReadRecords().apply());
  ASSERT_TRUE(log);
  LogWriter& writer = (*log)->writer();
  folder.memory_ends_in(20);
  while (writer.acknowledgements().wait(append_patiently(writer, "text"))) {
    if (writer.durable() > kRecords) break;
  }
  // It may have run out for the segment ahead alone, of which nothing follows.
  const auto error = writer.acknowledgements().error();
  EXPECT_TRUE(!error || error->fault == LogFault::no_memory);
}

// A write does not return before another one has come.
TEST(LogConcurrency, ARecordNeedNotWaitForTheFlushBeforeIt) {
  FaultyFolder folder(1);
  std::atomic<int> writes = 0;
  std::counting_semaphore<8> second(0);
  std::atomic<bool> waited_in_vain = false;
  {
    std::atomic<bool> is_counted = false;
    folder.before_write([&] {
      if (!is_counted) return;  // headers of segments
      const int number = ++writes;
      if (number == 2) second.release();
      if (number != 1) return;
      if (!second.try_acquire_for(std::chrono::seconds(60))) waited_in_vain = true;
    });
    const auto log = Log::open(folder, threaded_options(), ReadRecords().apply());
    ASSERT_TRUE(log);
    LogWriter& writer = (*log)->writer();
    is_counted = true;
    append_patiently(writer, "first");
    while (writes == 0) std::this_thread::yield();
    EXPECT_TRUE(writer.acknowledgements().wait(append_patiently(writer, "second")));
    is_counted = false;
  }
  EXPECT_FALSE(waited_in_vain);
}

TEST(LogConcurrency, WithoutASecondThreadThereIsNone) {
  FaultyFolder folder(1);
  LogOptions options = threaded_options();
  options.threads = false;
  const auto log = Log::open(folder, options, ReadRecords().apply());
  ASSERT_TRUE(log);
  int started = 0;
  const auto flusher = Flusher::start((*log)->writer(), [&](auto body) {
    if (++started == 2) throw std::system_error(EAGAIN, std::generic_category());
    return std::thread(std::move(body));
  });
  ASSERT_FALSE(flusher);
  EXPECT_EQ(flusher.error(),
            (LogError{{Code::system, 0, EAGAIN}, LogFault::system, FileName("."), 0, 1}));
}

}  // namespace
}  // namespace espalier::log

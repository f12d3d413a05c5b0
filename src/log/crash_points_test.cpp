// SPDX-License-Identifier: Apache-2.0
// Crashes in each operation of the disk of what a log does seldom: it changes the segment, and
// makes, renames and replaces a checkpoint. Worlds from seeds (log_seeds_test.cpp) come upon these
// by chance; here none is left out. Crashes while a loss is accepted: recovery_test.cpp; while the
// store's file is made: store_file_test.cpp.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "log/checkpoint_writer.hpp"
#include "log/testing/small_log.hpp"

namespace espalier::log {
namespace {

constexpr std::uint64_t kOlder = 4;  // sequences of the two checkpoints
constexpr std::uint64_t kNewer = 9;

/// A disk, a log on it whose records name their sequences, and what was promised of it.
class CrashPoint {
 public:
  explicit CrashPoint(std::uint64_t seed) : folder(seed) {}

  LogResult<void> open() {
    of_checkpoint.clear();
    first = last = 0;
    auto opened = Log::open(
        folder, small_options(),
        [this](std::uint64_t sequence, std::span<const std::byte> record) -> Result<void> {
          const std::string text(reinterpret_cast<const char*>(record.data()), record.size());
          if (sequence == 0) {
            of_checkpoint.push_back(text);
            return {};
          }
          EXPECT_EQ(text, text_of(sequence));
          EXPECT_TRUE(last == 0 || sequence == last + 1) << last << ", then " << sequence;
          if (first == 0) first = sequence;
          last = sequence;
          return {};
        });
    if (!opened) return std::unexpected(opened.error());
    log = std::move(*opened);
    return {};
  }
  /// One record, and a flush. A disk that has crashed takes none.
  void write() {
    LogWriter& writer = log->writer();
    const std::string text = text_of(writer.queue().next());
    const auto room = writer.reserve(text.size());
    if (!room) return;
    std::memcpy(room->data(), text.data(), text.size());
    appended = writer.append(*room);
    if (writer.flush()) acknowledged = appended;
  }
  /// A checkpoint of these records, while more are written, and the removal of what it replaces.
  /// Returns whether it is known to be there after a crash.
  bool make_checkpoint(std::uint64_t sequence, const std::vector<std::string>& records) {
    CheckpointTerms terms;
    terms.store = kSomeNode;
    terms.sequence = sequence;
    terms.incarnation = log->writer().incarnation();
    terms.block_bytes_max = kUnitBytes;
    terms.write_bytes = kUnitBytes;
    auto writer = CheckpointWriter::begin(folder, terms);
    if (!writer) return false;
    for (const std::string& record : records) {
      if (!(*writer)->add(std::as_bytes(std::span(record)))) return false;
      write();
    }
    const std::uint64_t through = acknowledged;
    bool more = true;
    while (more) {
      const auto checked = (*writer)->check_some(through);
      if (!checked) return false;
      more = *checked;
      write();
    }
    static_cast<void>((*writer)->finish(through));
    const bool is_durable = (*writer)->is_durable();
    if (is_durable) static_cast<void>(log->writer().remove_below(sequence));
    write();
    return is_durable;
  }
  /// The process ends, or the power is lost.
  void restart(bool power_lost) {
    folder.crash();
    log.reset();
    folder.restart(power_lost);
  }

  FaultyFolder folder;
  std::unique_ptr<Log> log;
  std::uint64_t appended = 0;
  std::uint64_t acknowledged = 0;
  // Of the last open():
  std::vector<std::string> of_checkpoint;
  std::uint64_t first = 0;
  std::uint64_t last = 0;

 private:
  static std::string text_of(std::uint64_t sequence) { return "r" + std::to_string(sequence); }
};

/// Has the disk crash in each operation of `act`, once in each world, and after each of these
/// crashes in each operation of recovery, too. Then calls `check`, with the log open.
struct Crashes {
  std::function<void(CrashPoint&)> prepare;
  std::function<void(CrashPoint&)> act;
  std::function<void(CrashPoint&)> check;

  /// Crashes in the n-th operation of `act`, and in the m-th of recovery; 0: not there. Returns
  /// whether the last of them happened.
  bool run(std::uint64_t seed, bool power_lost, std::uint64_t n, std::uint64_t m) const {
    SCOPED_TRACE("operations " + std::to_string(n) + " and " + std::to_string(m));
    CrashPoint point(seed);
    prepare(point);
    point.folder.crash_in(n);
    act(point);
    bool crashed = point.folder.crashed();
    point.restart(power_lost);
    if (m != 0) {
      point.folder.crash_in(m);
      static_cast<void>(point.open());
      crashed = point.folder.crashed();
      point.restart(power_lost);
    }
    const auto opened = point.open();
    EXPECT_TRUE(opened) << message(opened.error());
    if (opened) check_log(point);
    return crashed;
  }
  void check_log(CrashPoint& point) const {
    EXPECT_GE(point.last, point.acknowledged);
    EXPECT_LE(point.last, point.appended);
    point.acknowledged = point.last;
    check(point);
    // The log goes on, and has it all the next time.
    for (int i = 0; i < 9; ++i) point.write();
    EXPECT_EQ(point.acknowledged, point.appended);
    point.restart(true);
    EXPECT_TRUE(point.open());
    EXPECT_EQ(point.last, point.acknowledged);
  }
  void run_all() const {
    constexpr std::uint64_t kOperationsMax = 1000;
    const std::uint64_t seed = base::seed_from_environment(31);
    std::uint64_t last = 0;
    for (const bool power_lost : {false, true}) {
      for (std::uint64_t n = 1; run(seed + n, power_lost, n, 0); last = n++) {
        ASSERT_LT(n, kOperationsMax);
        ASSERT_FALSE(testing::Test::HasFailure()) << "power " << power_lost;
      }
    }
    for (std::uint64_t n = 1; n <= last; ++n) {
      for (std::uint64_t m = 1; run(seed + n + m, true, n, m); ++m) {
        ASSERT_LT(m, kOperationsMax);
        ASSERT_FALSE(testing::Test::HasFailure());
      }
    }
    ::testing::Test::RecordProperty("operations", std::to_string(last));
    EXPECT_GT(last, 15u) << "so many there are at least";
  }
};

void open_with_records(CrashPoint& point, int records) {
  ASSERT_TRUE(point.open());
  for (int i = 0; i < records; ++i) point.write();
  ASSERT_EQ(point.acknowledged, static_cast<std::uint64_t>(records));
}

// Two changes: to a segment that was filled ahead, and to one that was not.
TEST(CrashPoints, InAChangeOfTheSegmentLoseNothing) {
  const Crashes crashes{
      .prepare = [](CrashPoint& point) { open_with_records(point, 5); },
      .act =
          [](CrashPoint& point) {
            static_cast<void>(point.log->writer().prepare_spare());
            for (int i = 0; i < 12; ++i) point.write();
          },
      .check = [](CrashPoint& point) { EXPECT_EQ(point.first, 1u); }};
  crashes.run_all();
}

// One is there, and is replaced: afterwards one of the two counts, with all of the log behind it.
TEST(CrashPoints, InACheckpointLeaveTheOlderOrTheNewer) {
  const std::vector<std::string> older{"a1", "a2"};
  const std::vector<std::string> newer{std::string(3 * kUnitBytes, 'b'), "b2", "b3"};
  bool is_newer = false;
  std::uint64_t with_older = 0;
  std::uint64_t with_newer = 0;
  const Crashes crashes{
      .prepare =
          [&](CrashPoint& point) {
            open_with_records(point, 8);
            ASSERT_TRUE(point.make_checkpoint(kOlder, older));
          },
      .act = [&](CrashPoint& point) { is_newer = point.make_checkpoint(kNewer, newer); },
      .check =
          [&](CrashPoint& point) {
            const bool found_newer = point.of_checkpoint == newer;
            EXPECT_TRUE(found_newer || (!is_newer && point.of_checkpoint == older));
            EXPECT_EQ(point.first, found_newer ? kNewer : kOlder);
            ++(found_newer ? with_newer : with_older);
            const std::vector<std::string> names = *point.folder.names();
            for (const std::string& name : names) {
              EXPECT_FALSE(number_in(name, kCheckpointBegin, kBeingMade)) << name;
            }
            ASSERT_TRUE(point.make_checkpoint(point.first, {"c"}));
          }};
  crashes.run_all();
  EXPECT_GT(with_older, 20u);
  EXPECT_GT(with_newer, 5u);
}

// The first of all: until it has its name there is none, and the log has everything.
TEST(CrashPoints, InTheFirstCheckpointLeaveItOrNone) {
  const std::vector<std::string> records{std::string(2 * kUnitBytes, 'a'), "a2"};
  bool is_there = false;
  const Crashes crashes{
      .prepare = [](CrashPoint& point) { open_with_records(point, 8); },
      .act = [&](CrashPoint& point) { is_there = point.make_checkpoint(kOlder, records); },
      .check =
          [&](CrashPoint& point) {
            const bool found = point.of_checkpoint == records;
            EXPECT_TRUE(found || (!is_there && point.of_checkpoint.empty()));
            EXPECT_EQ(point.first, found ? kOlder : 1u);
          }};
  crashes.run_all();
}

}  // namespace
}  // namespace espalier::log

// SPDX-License-Identifier: Apache-2.0
// Calls a map and records the requests and answers.
//
// Each thread has a Recorder, so only the clock is shared; the logs are merged when the threads
// have ended. The clock's increments are sequentially consistent. To a race detector they order
// calls that do not overlap, so they can hide a race between those, but none between overlapping
// calls. Errors that promise to have changed nothing (out_of_memory) are recorded as refused; any
// other error cannot come from a test's calls, and is kept in `unexpected`.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "espalier/map.hpp"
#include "tests/support/history.hpp"

namespace espalier::test {

/// The clock that all threads of a test share.
class Clock {
 public:
  enum class Source : std::uint8_t {
    counter,  ///< all stamps differ
    /// The machine's clock, shared by all processes. Stamps may be equal, which checkers take for
    /// concurrent. Only for calls that leave the process: the effects of a request on others cannot
    /// precede the reading of the clock, as a load of this process might.
    machine,
  };
  explicit Clock(Source source = Source::counter) : source_(source) {}
  std::uint64_t tick() {
    return source_ == Source::machine ? base::monotonic_ns() : now_.fetch_add(1) + 1;
  }

 private:
  const Source source_;
  std::atomic<std::uint64_t> now_{0};
};

/// Synchronous calls of one thread.
class Recorder {
 public:
  Recorder(Map map, Clock& clock, std::uint32_t thread)
      : map_(map), clock_(clock), thread_(thread) {}

  void get(const std::string& key);
  void put(const std::string& key, const std::string& value);
  void insert(const std::string& key, const std::string& value);
  void update(const std::string& key, const std::string& value);
  void erase(const std::string& key);
  /// nullopt: erases.
  void modify(const std::string& key, const std::optional<std::string>& value);
  void write(const WriteBatch& batch);
  void floor(const std::string& key);
  void scan(const std::string& low, const std::string& high, ScanOptions options = {});
  void count(const std::string& low, const std::string& high);
  /// Takes a snapshot, instead of an earlier one.
  void hold_snapshot();
  /// Reads from the snapshot held; does nothing without one.
  void get_held(const std::string& key);
  void floor_held(const std::string& key);
  void scan_held(const std::string& low, const std::string& high, ScanOptions options = {});
  void drop_snapshot() { snapshot_.reset(); }

  /// Called between the items of a scan and within a modify: a test may yield there to other
  /// threads. May be empty.
  std::function<void()> in_between;

  /// The item of this thread's newest read, for conditions.
  [[nodiscard]] const std::optional<ReadItem>& last_item() const { return last_item_; }
  /// Makes an earlier item the newest one, so that a condition on its version is understood.
  void recall(ReadItem item) { last_item_ = std::move(item); }
  [[nodiscard]] std::vector<Operation>& log() { return log_; }
  [[nodiscard]] const std::optional<std::string>& unexpected() const { return unexpected_; }
  void give_up(std::string why) { unexpected_ = std::move(why); }

 private:
  friend class PipelineRecorder;

  Operation begin(Kind kind, std::string key);
  Operation begin(Operation&& operation);
  Operation begin_held(Kind kind, const std::string& key);
  void end(Operation&& operation);
  void end_read(Operation&& operation);
  void end_write(Operation&& operation, const Result<Written>& result);
  // Marks the operation as refused; an unexpected error becomes `unexpected`.
  void refused(Operation& operation, const Error& error);
  ItemSink collect(Operation& operation) const;

  Map map_;
  Clock& clock_;
  std::uint32_t thread_;
  std::vector<Operation> log_;
  std::optional<ReadItem> last_item_;
  std::optional<Snapshot> snapshot_;
  std::optional<std::string> unexpected_;
};

/// The history of several threads.
History merge_logs(std::vector<Recorder>& recorders, Contents initial = {},
                   Version initial_version = 0);

}  // namespace espalier::test

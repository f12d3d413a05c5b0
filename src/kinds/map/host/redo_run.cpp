// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/host/redo_run.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <new>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "kinds/map/host/host_executor.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"
#include "kinds/map/write/append_items.hpp"
#include "kinds/map/write/apply_redo.hpp"

namespace espalier::tree {
namespace {

/// Minimum of consecutive ascending puts to be built into leaves.
constexpr std::size_t kAppendMin = 32;

/// The set of keys in flight, by 64-bit hash: each once.
class KeysInFlight {
 public:
  static constexpr std::size_t kKeysMax = 256;

  /// False: the key, or one with the same hash, is in the set.
  [[nodiscard]] bool add(std::string_view key) {
    const std::uint64_t hash = std::hash<std::string_view>{}(key) | 1;  // 0: free
    std::size_t at = (hash >> 8) % kPlaces;
    for (; places_[at] != 0; at = (at + 1) % kPlaces) {
      if (places_[at] == hash) return false;
    }
    places_[at] = hash;
    return true;
  }
  void clear() { places_.fill(0); }

 private:
  static constexpr std::size_t kPlaces = 4 * kKeysMax;
  std::array<std::uint64_t, kPlaces> places_{};
};

class RedoRun final : private Handler {
 public:
  RedoRun(ThreadContext& context, MapCore& map, RedoRunState& state)
      : context_(context), map_(map), state_(state) {
    window_.reserve(KeysInFlight::kKeysMax);
  }

  Result<void> apply(std::span<const std::string_view> records, std::size_t& applied) {
    records_ = records;
    for (std::size_t i = 0; i < records.size() && !refused_; ++i) {
      const auto single = read_single_redo(map_, records[i]);
      if (!single) {
        if (write_window()) refuse(i, single.error());
      } else if (*single && !is_one_by_one()) {
        add(**single, i);
      } else if (write_window()) {
        apply_alone(i);
      }
    }
    write_window();
    if (!refused_) return {};
    applied = *refused_;
    return std::unexpected(error_);
  }

 private:
  struct Write {
    SingleRedo redo;
    std::size_t index = 0;  // index of its record
  };

  void add(const SingleRedo& write, std::size_t index) {
    if (ascends_ && !goes_on_ascending(write)) end_ascending();
    if (refused_) return;
    if (!ascends_ && (window_.size() >= KeysInFlight::kKeysMax || is_in_flight(write.key))) {
      if (!write_window()) return;
    }
    if (is_one_by_one()) return apply_alone(index);  // since just now
    if (window_.empty()) {
      ascends_ = is_short_put(write);
      if (!ascends_) static_cast<void>(keys_.add(write.key));
    }
    window_.push_back({write, index});
    version_ = std::max(version_, write.version);
  }
  /// Else it is from now on.
  [[nodiscard]] bool is_in_flight(std::string_view key) {
    return !keys_.add(key) && !planted(Bug::redo_key_twice_in_flight);
  }
  [[nodiscard]] bool is_short_put(const SingleRedo& write) const {
    return !write.erase && write.value.size() <= map_.geometry.inline_value_bytes_max;
  }
  [[nodiscard]] bool goes_on_ascending(const SingleRedo& write) const {
    return is_short_put(write) &&
           (window_.empty() || compare_keys(window_.back().redo.key, write.key) < 0);
  }
  /// If too few keys ascended, they stay in flight with those that follow.
  void end_ascending() {
    if (window_.size() >= kAppendMin) {
      write_window();
      return;
    }
    ascends_ = false;
    for (const Write& each : window_) static_cast<void>(keys_.add(each.redo.key));
  }
  [[nodiscard]] bool is_one_by_one() const { return state_.one_by_one != 0; }
  void apply_alone(std::size_t index) {
    if (state_.one_by_one != 0) --state_.one_by_one;
    const auto applied = apply_redo(context_, map_, records_[index]);
    if (!applied) refuse(index, applied.error());
  }
  /// Each gets the version of the last of them or a later one. False: one was refused.
  bool write_window() {
    if (window_.empty()) return !refused_;
    if (planted(Bug::redo_version_ignored)) version_ = 0;
    if (version_ != 0) map_.clock.go_on_above(version_ - 1);
    const bool appended = ascends_ && window_.size() >= kAppendMin && append();
    if (!appended && !refused_) write_in_flight();
    if (refused_ && error_.code == Code::out_of_memory) write_again();
    map_.clock.go_on_above(version_);  // erases of missing keys take no version
    window_.clear();
    keys_.clear();
    ascends_ = true;
    version_ = 0;
    return !refused_;
  }
  bool append() {
    items_.clear();
    for (const Write& each : window_) {
      items_.push_back(make_record(each.redo.key, each.redo.value, false));
    }
    const auto appended = append_items(context_, map_, items_);
    if (!appended) refuse(window_.front().index, appended.error());
    return appended && *appended;
  }
  void write_in_flight() {
    requests_.clear();
    for (const Write& each : window_) {
      Request& request = requests_.emplace_back();
      request.op = each.redo.erase ? Op::erase : Op::put;
      request.key = each.redo.key;
      request.value = each.redo.value;
      request.tag = each.index;
    }
    executor().submit(requests_, *this);
    executor().drain();
  }
  MapExecutor& executor() {
    if (executor_) return *executor_;
    return executor_.emplace(
        context_, map_, kLanes, [this](std::uint32_t, base::ReadyQueue& queue) {
          return HostAccess(map_.base, queue, true, &kNever);  // lets others run meanwhile
        });
  }
  /// Applies the window one by one: walks in flight hold memory that a full store needs. Reapplying
  /// writes that were done changes nothing. Keys differ, so writes that find no memory are retried
  /// after the others, of which some may be erases.
  ///
  /// Threads of other objects hold memory for a short time, so passes without success are repeated
  /// some times.
  void write_again() {
    state_.one_by_one = kOneByOne;
    for (int starved = 0; starved < kStarvedPasses; ++starved) {
      if (starved != 0) std::this_thread::yield();
      std::vector<Write> left;
      for (const Write& each : window_) {
        refused_.reset();
        apply_alone(each.index);
        if (!refused_) {
          starved = -1;
        } else if (error_.code == Code::out_of_memory) {
          left.push_back(each);
        } else {
          return;
        }
      }
      window_.swap(left);
      if (window_.empty()) return;
    }
    refused_.reset();
    refuse(window_.front().index, {Code::out_of_memory, 0, 0});
  }
  void done(const Completion& completion) override {
    if (!completion.ok) refuse(completion.tag, completion.error);
  }
  void refuse(std::size_t index, const Error& error) {
    if (refused_ && *refused_ < index) return;
    refused_ = index;
    error_ = error;
  }

  static constexpr bool kNever = false;
  static constexpr int kStarvedPasses = 64;
  static constexpr std::uint32_t kOneByOne = 4096;
  static constexpr std::uint32_t kLanes = 32;

  ThreadContext& context_;
  MapCore& map_;
  RedoRunState& state_;
  std::optional<MapExecutor> executor_;  // once something is in flight
  std::span<const std::string_view> records_;
  std::vector<Write> window_;  // written together, each key once
  bool ascends_ = true;        // they are puts of short values, of keys that do
  KeysInFlight keys_;          // of them, unless they ascend
  std::uint64_t version_ = 0;  // the last one of them
  std::vector<Record> items_;
  std::vector<Request> requests_;
  std::optional<std::size_t> refused_;
  Error error_;
};

}  // namespace

Result<void> apply_redo_run(ThreadContext& context, MapCore& map,
                            std::span<const std::string_view> records, std::size_t& applied,
                            RedoRunState& state) {
  ESPALIER_ASSERT(map.redo() == nullptr);  // the records of what is applied are there
  applied = 0;
  if (map.dropped.load(std::memory_order_acquire)) return {};
  try {
    return RedoRun(context, map, state).apply(records, applied);
  } catch (const std::bad_alloc&) {
    return fail(Code::out_of_memory);
  }
}

}  // namespace espalier::tree

// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/host/redo_run.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <new>
#include <optional>
#include <string_view>
#include <vector>

#include "base/assert.hpp"
#include "kinds/map/host/host_executor.hpp"
#include "kinds/map/write/apply_redo.hpp"
#include "kinds/map/write/batch.hpp"

namespace espalier::tree {
namespace {

/// So many writes in a row that ascend are a batch.
constexpr std::size_t kBatchMin = 32;

/// Keys that are in flight together, by a hash of 64 bits: each once.
class KeysInFlight {
 public:
  static constexpr std::size_t kKeysMax = 256;

  /// False: it is there already, or a key whose hash is the same.
  [[nodiscard]] bool add(std::string_view key) {
    const std::uint64_t hash = std::hash<std::string_view>{}(key) | 1;  // 0: nothing
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
  RedoRun(ThreadContext& context, MapCore& map)
      : context_(context),
        map_(map),
        executor_(context, map, kLanes, [this](std::uint32_t, base::ReadyQueue& queue) {
          return HostAccess(map_.base, queue, true, &kNever);  // others run meanwhile
        }) {
    requests_.reserve(KeysInFlight::kKeysMax);
  }

  Result<void> apply(std::span<const std::string_view> records, std::size_t& applied) {
    records_ = records;
    for (std::size_t i = 0; i < records.size() && !refused_; ++i) {
      const auto single = read_single_redo(map_, records[i]);
      if (!single) {
        if (write_all()) refuse(i, single.error());
      } else if (*single && !is_full_) {
        add(**single, i);
      } else if (write_all()) {
        apply_alone(i);
      }
    }
    write_all();
    if (!refused_) return {};
    applied = *refused_;
    return std::unexpected(error_);
  }

 private:
  void add(const SingleRedo& write, std::size_t index) {
    if (requests_.size() == KeysInFlight::kKeysMax || !keys_.add(write.key)) {
      if (!write_all()) return;
      if (is_full_) return apply_alone(index);
      static_cast<void>(keys_.add(write.key));
    }
    ascends_ = !write.erase && (requests_.empty() ||
                                (ascends_ && compare_keys(requests_.back().key, write.key) < 0));
    Request request;
    request.op = write.erase ? Op::erase : Op::put;
    request.key = write.key;
    request.value = write.value;
    request.tag = index;
    requests_.push_back(request);
    version_ = std::max(version_, write.version);
  }
  void apply_alone(std::size_t index) {
    const auto applied = apply_redo(context_, map_, records_[index]);
    if (!applied) refuse(index, applied.error());
  }
  /// Each gets the version of the last of them or a later one. False: one was refused.
  bool write_all() {
    if (requests_.empty()) return !refused_;
    if (version_ != 0) map_.clock.go_on_above(version_ - 1);
    if (ascends_ && requests_.size() >= kBatchMin) {
      if (!write_batch()) write_again();
    } else {
      executor_.submit(requests_, *this);
      executor_.drain();
      if (refused_ && error_.code == Code::out_of_memory) write_again();
    }
    map_.clock.go_on_above(version_);  // erases of nothing take no version
    requests_.clear();
    keys_.clear();
    version_ = 0;
    return !refused_;
  }
  /// All that are in flight. False: nothing was written. A batch takes buffers for more than it
  /// needs, which a full store does not have.
  bool write_batch() {
    batch_.clear();
    for (const Request& request : requests_) batch_.push_back({request.key, request.value});
    return apply_batch(context_, map_, batch_, {}).has_value();
  }
  /// One by one, in their order: what is in flight holds memory that a full store needs. Some were
  /// done before, which makes no difference to what comes of all.
  void write_again() {
    refused_.reset();
    is_full_ = true;
    for (const Request& request : requests_) {
      apply_alone(request.tag);
      if (refused_) return;
    }
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
  static constexpr std::uint32_t kLanes = 32;

  ThreadContext& context_;
  MapCore& map_;
  MapExecutor executor_;
  std::span<const std::string_view> records_;
  std::vector<Request> requests_;  // in flight together; their tags say of which records
  KeysInFlight keys_;              // of them
  std::uint64_t version_ = 0;      // the last one of them
  bool ascends_ = false;           // they are puts, of keys that do
  bool is_full_ = false;           // the store
  std::vector<BatchWrite> batch_;
  std::optional<std::size_t> refused_;
  Error error_;
};

}  // namespace

Result<void> apply_redo_run(ThreadContext& context, MapCore& map,
                            std::span<const std::string_view> records, std::size_t& applied) {
  ESPALIER_ASSERT(map.redo() == nullptr);  // the records of what is applied are there
  applied = 0;
  if (map.dropped.load(std::memory_order_acquire)) return {};
  try {
    return RedoRun(context, map).apply(records, applied);
  } catch (const std::bad_alloc&) {
    return fail(Code::out_of_memory);
  }
}

}  // namespace espalier::tree

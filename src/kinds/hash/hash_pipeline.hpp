// SPDX-License-Identifier: Apache-2.0
// Many requests in flight on one thread: a rolling queue, in which each request has its bin asked
// for, then its record, then is carried out, while those behind it are a stage behind.
//
//     requests  ... | 37 | ... | 21 | ... | 9 | ... | 5 |
//                     |          |          |         |
//               bin to L2   bin searched  record    carried out, in the order of submission
//                           record to L2  to L1
//
// What the first stages find are hints: the last one searches anew, with what is near by then, and
// begins at the directory if the bin has moved. So nothing that changes between stages can make an
// answer wrong.
//
// Thread: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "base/try_reserve.hpp"
#include "kinds/hash/hash_map.hpp"

namespace espalier::hash {

enum class HashOp : std::uint8_t { get, put, insert, update, erase };

/// One operation. The bytes that it points to must live until its completion.
struct HashRequest {
  HashOp op = HashOp::get;
  std::uint64_t tag = 0;  ///< handed back
  std::string_view key{};
  std::string_view value{};
};

/// The answer to one request. `value` is good during the call alone.
struct HashCompletion {
  std::uint64_t tag = 0;
  HashOp op = HashOp::get;
  bool ok = false;       ///< false: see `error`
  bool found = false;    ///< get: there is one; writes: there was
  bool applied = false;  ///< writes
  Error error{};
  std::uint64_t version = 0;
  std::uint64_t read_version = 0;
  std::string_view value{};
};

/// How many requests ahead of the one that is carried out: near < record < bin < 100.
struct PipelineDistances {
  std::uint32_t bin = 32;
  std::uint32_t record = 16;
  std::uint32_t near = 4;
};

class HashPipeline {
 public:
  HashPipeline(HashMap& map, HashThread& thread, PipelineDistances distances = {})
      : map_(map), thread_(thread), distances_(distances) {}

  /// Carries out all requests, and calls `done` with the completion of each: those of gets in
  /// order, those of writes once they are released. `done` must use neither the map nor the thread.
  /// What it throws is passed on: requests behind that one are not carried out, and completions of
  /// writes that were not released come in the next run.
  template <class Done>
  void run(std::span<const HashRequest> requests, const Done& done) {
    const std::size_t count = requests.size();
    const std::uint32_t first = distances_.bin + kEntryAhead;
    for (std::size_t step = 0; step < count + first; ++step) {
      const auto due = [&](std::uint32_t ahead, std::size_t& index) {
        index = step - (first - ahead);
        return step >= first - ahead && index < count;
      };
      std::size_t index = 0;
      const bool finishes = step >= first;
      const HashRequest* const request = finishes ? &requests[step - first] : nullptr;
      {
        const ExposedEpoch exposed(thread_);
        if (step < count) want_entry(requests[step], step);
        if (due(distances_.bin, index)) want_bin(index);
        if (due(distances_.record, index)) want_record(index);
        if (due(distances_.near, index)) bring_near(index);
        if (finishes && request->op == HashOp::get) get(*request, step - first, done);
      }
      if (finishes && request->op != HashOp::get) write(*request, step - first, done);
      if (!unreleased_.empty()) [[unlikely]]
        complete_released(done);
    }
    while (!unreleased_.empty()) {
      complete_released(done);
      if (!unreleased_.empty()) std::this_thread::yield();
    }
  }

 private:
  static constexpr std::size_t kPlaces = 128;
  /// So many before its bin is asked for, an entry of a directory is brought from a cache.
  static constexpr std::uint32_t kEntryAhead = 8;
  /// What is known of a request under way.
  struct Place {
    KeyHash hash{0, 0};
    PlaceWord segment{};
    const std::byte* bin = nullptr;     // null: its partition is empty
    const std::byte* record = nullptr;  // null: no slot had its tag
  };
  struct Unreleased {
    std::uint64_t version;
    HashCompletion completion;
  };

  [[nodiscard]] Place& place(std::size_t index) { return places_[index % kPlaces]; }

  void want_entry(const HashRequest& request, std::size_t index) {
    Place& at = place(index);
    at = {};
    if (request.key.empty()) return;
    at.hash = map_.hash(request.key);
    const PlaceWord directory = map_.directory(at.hash.partition());
    if (directory.none()) return;
    __builtin_prefetch(map_.entry(directory, at.hash.prefix(directory.depth())));
  }
  void want_bin(std::size_t index) {
    Place& at = place(index);
    const PlaceWord directory = map_.directory(at.hash.partition());
    if (directory.none()) return;
    at.segment = map_.segment(directory, at.hash.prefix(directory.depth()));
    at.bin = map_.bucket(at.segment, at.hash.bin());
    __builtin_prefetch(at.bin, 0, 2);
  }
  void want_record(std::size_t index) {
    Place& at = place(index);
    if (at.bin == nullptr) return;
    const std::uint32_t found = matching_slots(at.bin, at.hash.tag());
    if (found == 0) return;
    const Slot slot{base::load_shared<std::uint64_t>(at.bin + offsetof(Bucket, slots) +
                                                     first_match(found) * sizeof(Slot))};
    at.record = map_.image + slot.offset();
    __builtin_prefetch(at.record, 0, 2);
    __builtin_prefetch(at.record + kLineBytes, 0, 2);
  }
  void bring_near(std::size_t index) {
    const Place& at = place(index);
    if (at.bin != nullptr) __builtin_prefetch(at.bin);
    if (at.record == nullptr) return;
    __builtin_prefetch(at.record);
    __builtin_prefetch(at.record + kLineBytes);
  }

  [[nodiscard]] static bool key_is_good(std::string_view key) {
    return !key.empty() && key.size() <= kKeyBytesMax;
  }
  [[nodiscard]] static HashCompletion begin_completion(const HashRequest& request) {
    HashCompletion completion;
    completion.tag = request.tag;
    completion.op = request.op;
    completion.ok = key_is_good(request.key);
    if (!completion.ok) completion.error = Error{Code::key_too_long, 0, 0};
    return completion;
  }

  template <class Done>
  void get(const HashRequest& request, std::size_t index, const Done& done) {
    HashCompletion completion = begin_completion(request);
    if (completion.ok) {
      const Place& at = place(index);
      const HashAnswer answer =
          at.bin == nullptr
              ? HashReader::get_exposed(map_, thread_, request.key, at.hash)
              : HashReader::get_exposed(map_, thread_, request.key, at.hash, at.segment, at.bin);
      completion.found = answer.found;
      completion.version = answer.version;
      completion.read_version = answer.read_version;
      completion.value = answer.value;
    }
    done(completion);
  }

  template <class Done>
  void write(const HashRequest& request, std::size_t index, const Done& done) {
    static constexpr std::array kOps = {WriteOp::put, WriteOp::put, WriteOp::insert,
                                        WriteOp::update, WriteOp::erase};
    HashCompletion completion = begin_completion(request);
    if (!completion.ok) return done(completion);
    // Before the write: what was written must be answered. Without room it waits for its release.
    const bool room = base::try_reserve(unreleased_, 1);
    const auto outcome = map_.begin_write(thread_, kOps[static_cast<std::size_t>(request.op)],
                                          request.key, request.value, place(index).hash);
    completion.ok = outcome.has_value();
    if (!outcome) {
      completion.error = outcome.error();
      return done(completion);
    }
    completion.found = outcome->existed;
    completion.applied = outcome->applied;
    completion.version = outcome->version;
    while (!room && !map_.released(outcome->wait_for)) std::this_thread::yield();
    if (map_.released(outcome->wait_for)) return done(completion);
    unreleased_.push_back({outcome->wait_for, completion});
  }

  template <class Done>
  void complete_released(const Done& done) {
    while (!unreleased_.empty() && map_.released(unreleased_[completed_].version)) {
      // Off the list first: `done` may throw.
      const HashCompletion completion = unreleased_[completed_++].completion;
      if (2 * completed_ >= unreleased_.size()) {
        const auto begin = unreleased_.begin();
        unreleased_.erase(begin, begin + static_cast<std::ptrdiff_t>(completed_));
        completed_ = 0;
      }
      done(completion);
    }
  }

  HashMap& map_;
  HashThread& thread_;
  const PipelineDistances distances_;
  std::array<Place, kPlaces> places_;
  std::vector<Unreleased> unreleased_;  // by the order of submission
  std::size_t completed_ = 0;           // of them, at the front
};

}  // namespace espalier::hash

// SPDX-License-Identifier: Apache-2.0
// Many requests in flight on one thread: a rolling queue, in which each request has its bin asked
// for, then its record, then is carried out, while those behind it are a stage behind.
//
//     requests  ... | 37 | ... | 21 | ... | 9 | ... | 5 |
//                     |          |          |         |
//               bin to L2   bin searched  record    carried out, in the order of submission
//                           record to L2  to L1
//
// A request leaves the queue when so many others have come behind it, or a turn that brings none
// moves it on. So nothing drains between one call and the next.
//
// What the first stages find are hints: the last one searches anew, with what is near by then, and
// begins at the directory if the bin has moved. So nothing that changes between stages can make an
// answer wrong.
//
// Thread: one at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "base/assert.hpp"
#include "base/try_reserve.hpp"
#include "catalog/redo_sink.hpp"
#include "espalier/types.hpp"
#include "kinds/hash/hash_map.hpp"

namespace espalier::hash {

/// How many requests ahead of the one that is carried out: near <= record <= bin.
struct PipelineDistances {
  std::uint32_t bin = 32;
  std::uint32_t record = 16;
  std::uint32_t near = 4;
  /// So many before its bin is asked for, the entry of its directory is brought from a cache.
  std::uint32_t before_bin = 8;

  /// At most 127.
  [[nodiscard]] std::uint32_t entry() const { return bin + before_bin; }
  /// For so many requests in flight, of which more than 41 gain nothing.
  static PipelineDistances of(std::uint32_t in_flight) {
    const std::uint32_t entry = std::min(in_flight, 41u) - 1;
    const std::uint32_t bin = entry * 4 / 5;
    return {bin, entry * 2 / 5, entry / 10, entry - bin};
  }
};

class HashPipeline {
 public:
  HashPipeline(HashMap& map, HashThread& thread, PipelineDistances distances = {})
      : map_(map), thread_(thread), distances_(distances) {
    ESPALIER_ASSERT(distances.entry() < kPlaces);
  }

  /// Carries out all requests, and calls `done` with the completion of each: those of gets in
  /// order, those of writes once they are released, or never will be. What it throws is passed on:
  /// requests behind that one are not carried out, and completions of writes that were not released
  /// come in the next run. Requires: the queue is empty.
  template <class Done>
  void run(std::span<const Request> requests, const Done& done) {
    const auto each = [&done](const Completion& completion, Handler*) { done(completion); };
    try {
      for (const Request& request : requests) push(request, nullptr, each);
      drain(each);
    } catch (...) {
      for (Place& at : places_) at.request = nullptr;
      queued_ = 0;
      throw;
    }
  }

  /// Takes a request into the queue, and does a turn. The request and what it points to must live
  /// until its completion, which is handed to `done(const Completion&, Handler*)`.
  template <class Done>
  void push(const Request& request, Handler* handler, const Done& done) {
    ++queued_;
    turn(&request, handler, done);
  }
  /// A turn of those that are in it: after as many as distances.entry() all have been carried out.
  template <class Done>
  void turn(const Done& done) {
    turn(nullptr, nullptr, done);
  }
  /// Carries out all that are in it, and waits until the last is released, or never will be.
  template <class Done>
  void drain(const Done& done) {
    while (queued_ != 0) turn(done);
    while (!unreleased_.empty()) {
      complete_released(done);
      if (!unreleased_.empty()) std::this_thread::yield();
    }
  }
  /// Requests that have not been completed; and how many of them wait for nothing but a release.
  [[nodiscard]] std::size_t pending() const { return queued_ + unreleased(); }
  [[nodiscard]] std::size_t unreleased() const { return unreleased_.size() - completed_; }

 private:
  static constexpr std::size_t kPlaces = 128;
  /// What is known of a request under way.
  struct Place {
    const Request* request = nullptr;  // null: none came in that turn
    Handler* handler = nullptr;
    KeyHash hash{0, 0};
    PlaceWord segment{};
    const std::byte* bin = nullptr;     // null: its partition is empty
    const std::byte* record = nullptr;  // null: no slot had its tag
  };
  struct Unreleased {
    std::uint64_t version;
    Completion completion;
    Handler* handler;
  };

  template <class Done>
  void turn(const Request* next, Handler* handler, const Done& done) {
    const std::uint64_t now = turns_++;
    const auto at = [&](std::uint32_t ahead) -> Place& {
      return places_[(now + kPlaces - (distances_.entry() - ahead)) % kPlaces];
    };
    Place& begun = at(distances_.entry());
    begun = {};
    begun.request = next;
    begun.handler = handler;
    Place finished;
    {
      const ExposedEpoch exposed(thread_);
      want_entry(begun);
      want_bin(at(distances_.bin));
      want_record(at(distances_.record));
      bring_near(at(distances_.near));
      finished = at(0);
      at(0).request = nullptr;
      if (finished.request != nullptr) {
        --queued_;
        if (finished.request->op == Op::get) get(finished, done);
      }
    }
    if (finished.request != nullptr && finished.request->op != Op::get) write(finished, done);
    if (!unreleased_.empty()) [[unlikely]]
      complete_released(done);
  }

  void want_entry(Place& at) {
    if (at.request == nullptr || at.request->key.empty()) return;
    at.hash = map_.hash(at.request->key);
    const PlaceWord directory = map_.directory(at.hash.partition());
    if (directory.none()) return;
    __builtin_prefetch(map_.entry(directory, at.hash.prefix(directory.depth())));
  }
  void want_bin(Place& at) {
    if (at.request == nullptr) return;
    const PlaceWord directory = map_.directory(at.hash.partition());
    if (directory.none()) return;
    at.segment = map_.segment(directory, at.hash.prefix(directory.depth()));
    at.bin = map_.bucket(at.segment, at.hash.bin());
    __builtin_prefetch(at.bin, 0, 2);
  }
  void want_record(Place& at) {
    if (at.bin == nullptr) return;
    const std::uint32_t found = matching_slots(at.bin, at.hash.tag());
    if (found == 0) return;
    const Slot slot{base::load_shared<std::uint64_t>(at.bin + offsetof(Bucket, slots) +
                                                     first_match(found) * sizeof(Slot))};
    at.record = map_.image + slot.offset();
    __builtin_prefetch(at.record, 0, 2);
    __builtin_prefetch(at.record + kLineBytes, 0, 2);
  }
  static void bring_near(const Place& at) {
    if (at.bin != nullptr) __builtin_prefetch(at.bin);
    if (at.record == nullptr) return;
    __builtin_prefetch(at.record);
    __builtin_prefetch(at.record + kLineBytes);
  }

  [[nodiscard]] static std::optional<WriteOp> write_op(Op op) {
    switch (op) {
      case Op::put: return WriteOp::put;
      case Op::insert: return WriteOp::insert;
      case Op::update: return WriteOp::update;
      case Op::erase: return WriteOp::erase;
      default: return std::nullopt;
    }
  }
  [[nodiscard]] Completion begin_completion(const Request& request) const {
    Completion completion;
    completion.tag = request.tag;
    completion.op = request.op;
    if (request.op != Op::get && !write_op(request.op)) {
      const bool known = request.op > Op::erase && request.op <= Op::scan_floor;
      completion.error.code = known ? Code::unsupported : Code::invalid_argument;
    } else if (request.key.empty() || request.key.size() > kKeyBytesMax) {
      completion.error.code = Code::key_too_long;
    } else if (map_.is_dropped()) [[unlikely]] {
      completion.error = Error{Code::not_found, 0, map_.id()};
    }
    completion.ok = completion.error.code == Code::invalid;
    return completion;
  }

  template <class Done>
  void get(const Place& at, const Done& done) {
    Completion completion = begin_completion(*at.request);
    if (completion.ok) {
      const std::string_view key = at.request->key;
      const HashAnswer answer =
          at.bin == nullptr
              ? HashReader::get_exposed(map_, thread_, key, at.hash)
              : HashReader::get_exposed(map_, thread_, key, at.hash, at.segment, at.bin);
      completion.found = answer.found;
      completion.version = answer.version;
      completion.read_version = answer.read_version;
      completion.value = answer.value;
    }
    done(completion, at.handler);
  }

  [[nodiscard]] Result<WriteOutcome> begin_write(const Place& at) {
    try {
      const Request& asked = *at.request;
      return map_.begin_write(thread_, *write_op(asked.op), asked.key, asked.value, at.hash);
    } catch (const std::bad_alloc&) {
      return fail(Code::out_of_memory);
    }
  }
  template <class Done>
  void write(const Place& at, const Done& done) {
    Completion completion = begin_completion(*at.request);
    if (!completion.ok) return done(completion, at.handler);
    // Before the write: what was written must be answered. Without room it waits for its release.
    const bool room = base::try_reserve(unreleased_, 1);
    const auto outcome = begin_write(at);
    completion.ok = outcome.has_value();
    if (!outcome) {
      completion.error = outcome.error();
      return done(completion, at.handler);
    }
    completion.found = outcome->existed;
    completion.applied = outcome->applied;
    completion.version = outcome->version;
    while (!room && !may_answer(outcome->wait_for, completion)) std::this_thread::yield();
    if (may_answer(outcome->wait_for, completion)) return done(completion, at.handler);
    unreleased_.push_back({outcome->wait_for, completion, at.handler});
  }

  /// Whether an answer that waits for this version may be given. Where it will never be released,
  /// for its record cannot be durable, the answer becomes that error.
  [[nodiscard]] bool may_answer(std::uint64_t version, Completion& answer) const {
    if (map_.released(version)) return true;
    if (!map_.clock().failed()) return false;
    if (map_.released(version)) return true;  // the last records were durable before it failed
    answer.ok = false;
    answer.error = catalog::kRecordLost;
    return true;
  }

  template <class Done>
  void complete_released(const Done& done) {
    while (!unreleased_.empty() &&
           may_answer(unreleased_[completed_].version, unreleased_[completed_].completion)) {
      // Off the list first: `done` may throw.
      const Unreleased next = unreleased_[completed_++];
      if (2 * completed_ >= unreleased_.size()) {
        const auto begin = unreleased_.begin();
        unreleased_.erase(begin, begin + static_cast<std::ptrdiff_t>(completed_));
        completed_ = 0;
      }
      done(next.completion, next.handler);
    }
  }

  HashMap& map_;
  HashThread& thread_;
  const PipelineDistances distances_;
  std::array<Place, kPlaces> places_;
  std::uint64_t turns_ = 0;
  std::size_t queued_ = 0;              // that have not been carried out
  std::vector<Unreleased> unreleased_;  // by the order of submission
  std::size_t completed_ = 0;           // of them, at the front
};

}  // namespace espalier::hash

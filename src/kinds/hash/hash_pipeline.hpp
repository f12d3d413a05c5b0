// SPDX-License-Identifier: Apache-2.0
// Pipelines many requests of one thread through a rolling queue (rolling_queue.hpp): each is
// executed in the order of submission, after its bin and its record were prefetched.
//
// A request leaves the queue when the configured number of later requests has entered, or when a
// turn without new ones advances it. So the pipeline does not drain between two calls.
//
// Thread: one at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "base/prefetch.hpp"
#include "base/try_reserve.hpp"
#include "catalog/redo_sink.hpp"
#include "espalier/types.hpp"
#include "kinds/hash/hash_map.hpp"
#include "kinds/hash/rolling_queue.hpp"

namespace espalier::hash {

class HashPipeline {
 public:
  HashPipeline(HashMap& map, HashThread& thread, const PipelineDistances& distances = {})
      : map_(map), thread_(thread), queue_(distances, distances.bin + kTogether) {}

  /// Limit on requests that are hashed, looked up and executed together; under one epoch if there
  /// is no write among them.
  static constexpr std::size_t kTogether = 16;

  /// Executes all requests, and calls `done` with the completion of each: gets complete in order,
  /// writes once they are released, or never will be. Exceptions of `done` propagate: later
  /// requests are not executed, and completions of writes that were not released come in the next
  /// run. Requires: the queue is empty.
  template <class Done>
  void run(std::span<const Request> requests, const Done& done) {
    const auto each = [&done](const Completion& completion, Handler*) { done(completion); };
    try {
      while (!requests.empty()) requests = push_some(requests, nullptr, each);
      drain(each);
    } catch (...) {
      queue_.clear();
      throw;
    }
  }

  /// Enqueues a request, and executes the one that it pushes to the front. The request and what it
  /// points to must live until its completion, which is passed to `done(const Completion&,
  /// Handler*)`.
  template <class Done>
  void push(const Request& request, Handler* handler, const Done& done) {
    push_some({&request, 1}, handler, done);
  }
  /// The same for up to kTogether of them. Returns those that it has not taken.
  template <class Done>
  [[nodiscard]] std::span<const Request> push(std::span<const Request> requests, Handler* handler,
                                              const Done& done) {
    return push_some(requests, handler, done);
  }
  /// Executes the next request, if there is one.
  template <class Done>
  void turn(const Done& done) {
    bool writes = false;
    if (!queue_.empty()) {
      const ExposedEpoch exposed(thread_);
      queue_.look_ahead(0);
      writes = !take_turn(done);
    }
    finish(writes, done);
  }
  /// Executes all requests in the queue, and waits until the last is released, or never will be.
  template <class Done>
  void drain(const Done& done) {
    while (!queue_.empty()) turn(done);
    while (!unreleased_.empty()) {
      complete_released(done);
      if (!unreleased_.empty()) std::this_thread::yield();
    }
  }
  /// Requests that are not completed; and how many of them wait only for a release.
  [[nodiscard]] std::size_t pending() const { return queue_.size() + unreleased(); }
  [[nodiscard]] std::size_t unreleased() const { return unreleased_.size() - completed_; }

 private:
  struct Asked {
    const Request* request;
    Handler* handler;
  };
  using Place = RollingQueue<Asked>::Place;
  struct Unreleased {
    std::uint64_t version;
    Completion completion;
    Handler* handler;
  };

  /// Enqueues up to kTogether requests, and executes those that they push to the front. Works in
  /// stages: in each loop no request waits for another. Returns the requests that are left.
  template <class Done>
  std::span<const Request> push_some(std::span<const Request> requests, Handler* handler,
                                     const Done& done) {
    if (is_full()) [[unlikely]]
      make_room(done);  // an exception of `done` left more there
    const std::size_t some = std::min(requests.size(), kTogether);
    for (const Request& request : requests.first(some)) {
      queue_.push(map_, request.key, {&request, handler});
    }
    ask_for_next(requests.subspan(some));
    make_room(done);
    return requests.subspan(some);
  }
  template <class Done>
  void make_room(const Done& done) {
    do {
      bool writes = false;
      {
        const ExposedEpoch exposed(thread_);
        queue_.follow();
        while (is_full() && !writes) writes = !take_turn(done);
      }
      finish(writes, done);
    } while (is_full());
  }
  /// Prefetches the requests that follow, and their keys: a key may lie anywhere.
  static void ask_for_next(std::span<const Request> requests) {
    const std::size_t next = std::min(requests.size(), kTogether);
    for (const Request& request : requests.first(next)) {
      base::prefetch_line(request.key.data());
      base::prefetch_line(&request + kTogether);
    }
  }
  [[nodiscard]] bool is_full() const { return queue_.size() > queue_.distances().bin; }
  /// Executes the next request if it is a get; else finish() does.
  template <class Done>
  [[nodiscard]] bool take_turn(const Done& done) {
    if (queue_.next().what.request->op != Op::get) return false;
    get(queue_.take(), done);
    return true;
  }
  /// Executes what needs no exposed epoch.
  template <class Done>
  void finish(bool writes, const Done& done) {
    if (writes) write(queue_.take(), done);
    if (!unreleased_.empty()) [[unlikely]]
      complete_released(done);
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
    const auto [request, handler] = at.what;
    Completion completion = begin_completion(*request);
    if (completion.ok) {
      const HashAnswer answer =
          HashReader::get_exposed(map_, thread_, request->key, at.hash(), at.hint);
      completion.found = answer.found;
      completion.version = answer.version;
      completion.read_version = answer.read_version;
      completion.value = answer.value;
    }
    done(completion, handler);
  }

  [[nodiscard]] Result<void> begin_write(const Place& at, WriteOutcome& outcome) {
    try {
      const Request& asked = *at.what.request;
      return map_.begin_write(thread_, *write_op(asked.op), asked.key, asked.value, at.hash(),
                              outcome);
    } catch (const std::bad_alloc&) {
      return fail(Code::out_of_memory);
    }
  }
  template <class Done>
  void write(const Place& at, const Done& done) {
    Handler* const handler = at.what.handler;
    Completion completion = begin_completion(*at.what.request);
    if (!completion.ok) return done(completion, handler);
    // Reserved before the write, which must be answered. Without room it waits for its release.
    const bool room = base::try_reserve(unreleased_, 1);
    WriteOutcome outcome;
    const auto begun = begin_write(at, outcome);
    completion.ok = begun.has_value();
    if (!begun) {
      completion.error = begun.error();
      return done(completion, handler);
    }
    completion.found = outcome.existed;
    completion.applied = outcome.applied;
    completion.version = outcome.version;
    while (!room && !may_answer(outcome.wait_for, completion)) std::this_thread::yield();
    if (may_answer(outcome.wait_for, completion)) return done(completion, handler);
    unreleased_.push_back({outcome.wait_for, completion, handler});
  }

  /// Whether an answer that waits for this version may be sent. If the version will never be
  /// released, because its record cannot be durable, the answer becomes that error.
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
      // Removed first: `done` may throw.
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
  RollingQueue<Asked> queue_;
  std::vector<Unreleased> unreleased_;  // in the order of submission
  std::size_t completed_ = 0;           // of them, at the front
};

}  // namespace espalier::hash

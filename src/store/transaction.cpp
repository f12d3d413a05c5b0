// SPDX-License-Identifier: Apache-2.0
#include "store/transaction.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/durable_mark.hpp"
#include "catalog/redo_sink.hpp"
#include "catalog/transaction_record.hpp"
#include "memory/version_clock.hpp"
#include "store/numbered_outcome.hpp"
#include "store/planted_store_bugs.hpp"
#include "store/starved_write.hpp"
#include "store/store_core.hpp"
#include "store/transaction_request.hpp"

namespace espalier::store {
namespace {

using catalog::StepKind;
using catalog::TransactionPart;

// Rounds in which other threads took a partition's stock; each round fetches more.
constexpr int kRoundsMax = 1000;

// Limits of TransactTerms::briefly, for a thread on which other requests wait.
constexpr int kRoundsBriefly = 8;
constexpr std::size_t kBytesBriefly = std::size_t{64} << 10;
constexpr std::size_t kErasesBriefly = 16;

constexpr std::chrono::milliseconds kReleasedAgain{1};

bool is_brief(std::span<const ObjectSteps> objects) {
  std::size_t bytes = 0;
  std::size_t erases = 0;
  for (const ObjectSteps& object : objects) {
    for (const catalog::TransactionStep& step : object.steps) {
      bytes += step.key.size() + step.value.size() + step.condition.value.size();
      if (step.kind == StepKind::erase) ++erases;
    }
  }
  return bytes <= kBytesBriefly && erases <= kErasesBriefly;
}

Transacted too_long() {
  Transacted nothing;
  nothing.too_long = true;
  return nothing;
}

/// One attempt, with the memory at hand.
class Attempt {
 public:
  Attempt(memory::VersionClock& clock, std::span<ObjectSteps> objects, const TransactTerms& terms)
      : clock_(clock), objects_(objects), terms_(terms), outcome_(terms.turn) {}
  ~Attempt() { unlock_all(); }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  Result<Transacted> run() {
    if (auto begun = begin(); !begun) return std::unexpected(begun.error());
    if (auto recorded = reserve_record(); !recorded) return std::unexpected(recorded.error());
    clock_.admit();
    const int rounds = terms_.briefly ? kRoundsBriefly : kRoundsMax;
    for (int i = 0; i < rounds; ++i) {
      const auto ended = round();
      if (!ended) return refused(ended.error());
      if (*ended) return keep_ended();
      unlock_all();
      if (!has_room()) {
        if (auto more = reserve_record(); !more) return std::unexpected(more.error());
      }
    }
    if (terms_.briefly) return too_long();
    return fail(Code::busy);
  }

 private:
  // Returns false if another round is needed.
  Result<bool> round() {
    if (planted(Bug::checked_unlocked) && !check_unlocked()) return true;
    if (auto locked = lock_all(); !locked) return std::unexpected(locked.error());
    if (auto there = look_for_dropped(); !there) return std::unexpected(there.error());
    if (!planted(Bug::checked_unlocked) && !check()) return true;
    if (is_long_to_read()) {
      done_ = too_long();
      return true;
    }
    if (auto found = read_all(); !found) return std::unexpected(found.error());
    if (!writes_) {
      done_.wait_for = clock_.taken();
      return true;
    }
    if (outcome_ && !outcome_.take(*terms_.answer)) return false;
    const auto prepared = prepare_all();
    if (prepared && *prepared) commit();
    return prepared;
  }

  // A numbered transaction that wrote nothing has its outcome in a record of its own.
  Result<Transacted> keep_ended() {
    if (!outcome_ || done_.version != 0 || done_.too_long) return std::move(done_);
    unlock_all();
    const auto kept = outcome_.keep_unwritten({objects_.front().object, done_.wait_for,
                                               done_.failed_step ? &*done_.failed_step : nullptr,
                                               *terms_.answer});
    if (!kept) return std::unexpected(kept.error());
    done_.sequence = *kept;
    return std::move(done_);
  }

  // A refusal that reveals an unreleased state must wait for its release.
  Result<Transacted> refused(const Error& error) {
    if (error.code != Code::exhausted && error.code != Code::value_too_long) {
      return std::unexpected(error);
    }
    Transacted answer;
    answer.refused = error;
    answer.wait_for = clock_.taken();
    return answer;
  }

  Result<void> begin() {
    std::size_t gets = 0;
    for (const ObjectSteps& object : objects_) {
      gets += static_cast<std::size_t>(std::ranges::count(
          object.steps, StepKind::get, [](const auto& step) { return step.kind; }));
      auto part = object.object->transaction_part(object.steps, places_);
      if (!part) return std::unexpected(part.error());
      writes_ = writes_ || std::ranges::any_of(object.steps, [](const auto& step) {
                  return step.kind == StepKind::put || step.kind == StepKind::erase;
                });
      parts_.push_back({std::move(*part), &object});
    }
    const auto place = [](const Part& part) {
      return std::pair(part.part->rank(), part.object->id);
    };
    std::ranges::sort(parts_, {}, place);
    outcome_.expect(gets);
    return {};
  }

  // Runs before any lock: all that is written is known by now, but for the version and the answer.
  Result<void> reserve_record() {
    if (!writes_) return {};
    std::size_t bytes = kept_bytes_ = outcome_.record_bytes();
    for (const Part& part : parts_) bytes += part.part->record_bytes();
    auto room = catalog::reserve_transaction(parts_.front().object->object->redo(), bytes);
    if (!room) return std::unexpected(room.error());
    room_ = *std::move(room);
    if (!room_) return {};
    std::span<std::byte> to = catalog::records_in(room_.bytes());
    for (const Part& part : parts_) {
      const std::size_t own = part.part->record_bytes();
      part.part->write_record(to.first(own));
      to = to.subspan(own);
    }
    return {};
  }

  [[nodiscard]] bool has_room() const { return !writes_ || kept_bytes_ == outcome_.record_bytes(); }

  Result<void> lock_all() {
    for (const auto step :
         {&TransactionPart::fetch, &TransactionPart::enter, &TransactionPart::lock}) {
      for (const Part& part : parts_) {
        if (auto done = (*part.part.*step)(); !done) return done;
      }
    }
    return {};
  }

  void unlock_all() noexcept {
    for (const Part& part : parts_) part.part->unlock();
  }

  // An object may have been dropped while the transaction waited; no reader would find its writes.
  Result<void> look_for_dropped() {
    for (const Part& part : parts_) {
      if (!part.part->is_dropped()) continue;
      return fail(Code::not_found, static_cast<std::uint32_t>(part.object - objects_.data()));
    }
    return {};
  }

  bool check() {
    std::optional<std::uint32_t> failed;
    for (const Part& part : parts_) {
      for (std::size_t i = 0; i < part.object->steps.size(); ++i) {
        const std::uint32_t number = part.object->numbers[i];
        const bool later = failed && *failed < number;
        if (part.object->steps[i].kind != StepKind::check || later) continue;
        if (!part.part->holds(i)) failed = number;
      }
    }
    if (!failed) return true;
    done_ = {};
    done_.failed_step = failed;
    done_.wait_for = clock_.taken();
    return false;
  }

  // Only for a planted bug.
  bool check_unlocked() {
    if (!lock_all()) return true;
    const bool good = check();
    unlock_all();
    reached(Moment::checked);
    return good;
  }

  [[nodiscard]] bool is_long_to_read() const {
    std::size_t bytes = 0;
    if (terms_.briefly) {
      for (const Part& part : parts_) bytes += part.bytes_to_read();
    }
    return bytes > kBytesBriefly;
  }

  Result<void> read_all() {
    std::vector<std::pair<std::uint32_t, catalog::StepFound>> found;
    std::size_t bytes = 0;
    for (const Part& part : parts_) {
      for (std::size_t i = 0; i < part.object->steps.size(); ++i) {
        if (part.object->steps[i].kind != StepKind::get) continue;
        bytes += part.part->found_bytes(i);
        if (bytes > kTransactionBytesMax) return fail(Code::value_too_long, kTransactionBytesMax);
        found.emplace_back(part.object->numbers[i], catalog::StepFound());
        part.part->read(i, found.back().second);
      }
    }
    std::ranges::sort(found, {}, [](const auto& one) { return one.first; });
    done_.found.clear();
    for (auto& one : found) done_.found.push_back(std::move(one.second));
    if (terms_.answer == nullptr) return {};
    *terms_.answer = found_bytes(done_);
    done_.found.clear();
    return {};
  }

  // All objects report what they lack before one of them places anything.
  Result<bool> prepare_all() {
    bool ready = true;
    for (const Part& part : parts_) ready = part.part->look() && ready;
    if (!ready) return false;
    for (const Part& part : parts_) {
      auto prepared = part.part->prepare();
      if (!prepared || !*prepared) return prepared;
    }
    return true;
  }

  // Nothing from here on fails or waits.
  void commit() noexcept {
    for (const Part& part : parts_) part.part->fill();
    const std::uint64_t version = clock_.take();
    stamp(version);
    std::uint64_t sequence = hand_over(version);
    if (answers_early()) sequence = 0;
    if (planted(Bug::one_object_first)) return commit_apart(version, sequence);
    for (const Part& part : parts_) part.part->publish(version);
    clock_.done(version, sequence);
    finish(version);
  }

  // Whether readers may see it before its record is durable: the strictest of its objects decides.
  [[nodiscard]] bool answers_early() const noexcept {
    return std::ranges::all_of(
        parts_, [](const Part& part) { return part.object->object->is_async(); });
  }

  void stamp(std::uint64_t version) noexcept {
    if (!room_) return;
    std::span<std::byte> records = catalog::records_in(room_.bytes());
    for (const Part& part : parts_) {
      const std::size_t own = part.part->record_bytes();
      part.part->stamp_record(records.first(own), version);
      records = records.subspan(own);
    }
    if (outcome_) outcome_.write(records, version);
  }

  std::uint64_t hand_over(std::uint64_t version) noexcept {
    const auto record = [this] { return room_.hand_over(); };
    return outcome_ ? outcome_.keep(objects_.front().object, version, record) : record();
  }

  void finish(std::uint64_t version) noexcept {
    for (const Part& part : parts_) part.part->finish(version);
    for (const Part& part : parts_) part.part->tidy();
    done_.version = done_.wait_for = version;
  }

  // Only for a planted bug.
  void commit_apart(std::uint64_t version, std::uint64_t sequence) noexcept {
    for (const Part& part : parts_) {
      if (&part != &parts_.front()) version = clock_.take();
      part.part->publish(version);
      clock_.done(version, sequence);
      reached(Moment::half_published);
    }
    finish(version);
  }

  struct Part {
    std::unique_ptr<TransactionPart> part;
    const ObjectSteps* object;

    [[nodiscard]] std::size_t bytes_to_read() const {
      std::size_t bytes = 0;
      for (std::size_t i = 0; i < object->steps.size(); ++i) {
        if (object->steps[i].kind == StepKind::get) bytes += part->found_bytes(i);
      }
      return bytes;
    }
  };

  memory::VersionClock& clock_;
  const std::span<ObjectSteps> objects_;
  const TransactTerms& terms_;
  catalog::TransactionPlaces places_;
  std::vector<Part> parts_;
  catalog::RedoRoom room_;
  NumberedOutcome outcome_;
  std::size_t kept_bytes_ = 0;  // of the outcome, in the record
  bool writes_ = false;
  Transacted done_;
};

Result<Transacted> attempt(memory::VersionClock& clock, std::span<ObjectSteps> objects,
                           const TransactTerms& terms) noexcept {
  try {
    if (terms.briefly && !is_brief(objects)) return too_long();
    return Attempt(clock, objects, terms).run();
  } catch (const std::bad_alloc&) {
    return fail(Code::out_of_memory);
  }
}

}  // namespace

Result<memory::VersionClock*> clock_of(std::span<const ObjectSteps> objects) {
  memory::VersionClock* shared = nullptr;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    memory::VersionClock* const own = objects[i].object->transaction_clock();
    if (own == nullptr || (shared != nullptr && own != shared)) {
      return fail(Code::unsupported, static_cast<std::uint32_t>(i));
    }
    shared = own;
  }
  // A crash would lose half of the transaction.
  const auto is_kept = [](const ObjectSteps& of) { return of.object->redo() != nullptr; };
  for (std::size_t i = 1; i < objects.size(); ++i) {
    if (is_kept(objects[i]) == is_kept(objects[0])) continue;
    return fail(Code::unsupported, static_cast<std::uint32_t>(i));
  }
  return shared;
}

bool only_erases(std::span<const ObjectSteps> objects) {
  const auto puts = [](const ObjectSteps& object) {
    return std::ranges::any_of(object.steps,
                               [](const auto& step) { return step.kind == StepKind::put; });
  };
  return std::ranges::none_of(objects, puts);
}

Result<Transacted> transact(tree::StoreCore& store, std::span<ObjectSteps> objects,
                            const TransactTerms& terms) noexcept {
  const auto clock = clock_of(objects);
  if (!clock) return std::unexpected(clock.error());
  if (*clock == nullptr) return fail(Code::invalid_argument);
  auto done = attempt(**clock, objects, terms);
  tree::StarvedWrite starved{only_erases(objects), 0, base::monotonic_ns(), false};
  while (terms.waits && !done && done.error().code == Code::out_of_memory) {
    if (!tree::may_try_again(store, starved)) break;
    ++starved.attempts;
    if (starved.attempts > tree::kAttemptsAtOnce) {
      const std::uint64_t until_ns = base::monotonic_ns() + tree::kStarvedPaceNs;
      while (base::monotonic_ns() < until_ns) std::this_thread::yield();
    }
    tree::make_room(store, starved);
    done = attempt(**clock, objects, terms);
  }
  return done;
}

bool wait_for_release(const KeptAnswer& answer, catalog::RedoSink* sink) {
  for (;;) {
    const KeptAnswer::Release release = answer.release(sink);
    if (release != KeptAnswer::Release::waits) return release == KeptAnswer::Release::released;
    const bool durable = sink == nullptr || sink->mark().await(answer.sequence, kReleasedAgain);
    if (durable) std::this_thread::yield();  // another writer has to finish
  }
}

bool wait_for_release(memory::VersionClock& clock, std::uint64_t version) {
  for (;;) {
    const std::uint64_t seen = clock.seen_durable();
    if (clock.released_now() >= version) return true;
    if (clock.failed()) return clock.released_now() >= version;
    clock.pause(seen);
  }
}

}  // namespace espalier::store

// SPDX-License-Identifier: Apache-2.0
// Write versions, and their release to readers in order [Honeycomb §3.2].
//
// A writer takes a version when nothing that follows can fail or wait, publishes its writes under
// it, and marks the version as done. The read version advances over done versions only, so it never
// passes one whose writes are incomplete. The writer that completes the oldest outstanding version
// also releases later ones that are done. So no thread waits for a particular other thread to be
// scheduled, except between `take` and `done`, where nothing suspends (DESIGN §2.1 rule 11).
//
// Invariants
// 1. read_version <= write_version.
// 2. Every version <= read_version is done.
// 3. At most kWindow versions are outstanding; `admit` waits for room before a version is taken. A
//    caller that must not wait checks `may_take` first, which leaves room for callers it has
//    admitted.
// 4. While a hold stands (release_hold.hpp), the read version does not rise, except for a release
//    already under way when the hold was granted. The thread that ends a hold releases the versions
//    done meanwhile; a writer that does not see the end has marked its version as done before it
//    looked.
// 5. For a recorded object, every version <= read_version has a durable record, and so have all
//    records before it. The thread that raises the durable mark releases versions that are done but
//    were not durable.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "memory/planted_memory_bugs.hpp"
#include "memory/release_hold.hpp"

namespace espalier::base {
class DurableMark;
}

namespace espalier::memory {

/// The location of a clock's two words: an object's own header, or a buffer of its group
/// (wire/group_clock.hpp). The header says which, for remote readers.
struct VersionWords {
  std::byte* read = nullptr;   ///< the newest released version
  std::byte* write = nullptr;  ///< the newest version that a writer took
};

/// A version clock. Objects that share versions share the clock; only the clock writes its words.
class VersionClock {
 public:
  VersionClock();
  ~VersionClock();

  void attach(const VersionWords& words, bool versions) {
    words_ = words;
    versions_ = versions;
    done_ = std::make_unique<std::atomic<std::uint64_t>[]>(kWindow);
  }

  /// From now on a version is released only once the record of its write is durable. nullptr (the
  /// default): no such condition. The mark outlives the clock. Cost: 32 KiB with a mark.
  /// Errors: std::bad_alloc. Requires: all taken versions are released; no other thread uses the
  /// clock.
  void wait_for_records(base::DurableMark* mark);
  /// Whether the log has failed: versions that are not released by now never are.
  [[nodiscard]] bool failed() const { return records_ != nullptr && records_failed(); }

  /// Whether attach() has set its words.
  [[nodiscard]] bool attached() const { return words_.read != nullptr && words_.write != nullptr; }

  /// The newest released version. Cost: one load.
  [[nodiscard]] std::uint64_t released() const {
    return base::load_shared<std::uint64_t>(words_.read, std::memory_order_acquire);
  }
  [[nodiscard]] std::uint64_t taken() const {
    return base::load_shared<std::uint64_t>(words_.write);
  }

  /// As released(), for a writer that waits for a release: also ends an overdue hold. Cost: one
  /// more load.
  [[nodiscard]] std::uint64_t released_now() {
    if (hold_.stands()) [[unlikely]]
      end_overdue_hold();
    return released();
  }

  /// The durable mark, for a waiter to read before it checks its condition: pause() returns
  /// immediately if the mark has changed since. Cost: a load or two.
  [[nodiscard]] std::uint64_t seen_durable() const noexcept {
    return records_ != nullptr ? records_released() : 0;
  }
  /// Yields to the threads that release, or waits for the disk to flush, at most 0.1 ms. Requires:
  /// the caller holds no lock.
  void pause(std::uint64_t seen) {
    if (records_ == nullptr) return std::this_thread::yield();
    await_records(seen);
  }

  /// Whether a version may be taken, i.e. few enough are outstanding. If the log has failed, it
  /// may: there is no room for records, so few writers get here.
  [[nodiscard]] bool may_take() { return has_room(kWindow / 2); }
  /// Waits until there is room for a version. Call before locking anything. After may_take() it
  /// does not wait, unless a thousand other threads have taken one since.
  void admit() {
    while (!has_room(kWindow / 4 * 3)) std::this_thread::yield();
  }

  /// Holds releases for a moment; returns the hold's number, or 0: not now. Requires: versions are
  /// on.
  [[nodiscard]] std::uint64_t hold() {
    // First release what an overdue hold has kept back, if no writer has waited for it.
    if (hold_.stands()) end_overdue_hold();
    return hold_.grant();
  }
  /// Ends a hold. Returns whether it stood until now.
  [[nodiscard]] bool end_hold(std::uint64_t number) {
    const bool stood = hold_.end(number);
    if (!hold_.stands()) release_from(released());  // else another client's hold stands
    return stood;
  }
  /// For tests: the time source by which holds end.
  void set_time(std::uint64_t (*now_ns)() noexcept) { hold_.now_ns = now_ns; }

  /// Takes the next write version; 0 if versions are off.
  [[nodiscard]] std::uint64_t take() {
    if (!versions_) return 0;
    return base::shared<std::uint64_t>(words_.write).fetch_add(1) + 1;
  }

  /// Continues above a version that was taken before, while the map lay elsewhere: its records are
  /// applied. Waits for the end of a hold that keeps versions back. As with a release under way
  /// when a hold was granted, the version may be released under a hold.
  /// Requires: all taken versions are done, and no thread takes one.
  void go_on_above(std::uint64_t version) {
    if (!versions_) return;
    recorded_ = std::max(recorded_, version);
    if (version <= taken()) return;
    while (released_now() < taken()) std::this_thread::yield();
    ESPALIER_ASSERT(released() == taken());
    base::shared<std::uint64_t>(words_.write).store(version);
    base::shared<std::uint64_t>(words_.read).store(version);
  }

  /// Whether it has passed all versions of go_on_above(): applying the records took versions that
  /// no record has. Requires: as go_on_above().
  [[nodiscard]] bool is_above_records() const { return versions_ && taken() > recorded_; }

  /// Marks `version` as done: everything written under it is complete. Releases what can be
  /// released. `sequence`: of its record; 0: none.
  void done(std::uint64_t version, std::uint64_t sequence = 0) {
    if (!versions_) return;
    auto read = base::shared<std::uint64_t>(words_.read);
    if (planted(Bug::release_out_of_order)) {
      read.store(version);
      return;
    }
    ESPALIER_ASSERT(version > read.load() && version <= taken());  // taken, and not done before
    // While version - 1 is the newest released one, no other writer can move on. The
    // exchanges are full fences: of two writers that finish together at least one sees the other.
    if (read.load() == version - 1 && sequence <= durable_->load() && !held()) [[likely]] {
      read.exchange(version);
      release_from(version);
      return;
    }
    if (records_ != nullptr) [[unlikely]]
      wait_for_record(version, sequence);
    done_[version % kWindow].exchange(version);
    if (records_ != nullptr) [[unlikely]]
      ask_for_rise();  // before the mark is read
    if (!held()) release_from(read.load());
  }

 private:
  static constexpr std::uint64_t kWindow = 4096;
  static constexpr std::atomic<std::uint64_t> kAllDurable{~std::uint64_t{0}};
  class Records;  // of pending versions

  [[nodiscard]] bool has_room(std::uint64_t outstanding) {
    return !versions_ || taken() - released_now() <= outstanding || failed();
  }

  void wait_for_record(std::uint64_t version, std::uint64_t sequence) noexcept;
  void ask_for_rise() noexcept;
  [[nodiscard]] bool record_is_durable(std::uint64_t version) const noexcept;
  [[nodiscard]] bool records_failed() const noexcept;
  [[nodiscard]] std::uint64_t records_released() const noexcept;
  void await_records(std::uint64_t seen);
  bool release_durable() noexcept;

  // Whether releases have to wait.
  [[nodiscard]] bool held() {
    if (!hold_.stands()) [[likely]]
      return false;
    return !planted(Bug::hold_ignored) && !end_overdue_hold();
  }

  // Returns whether no hold stands now.
  bool end_overdue_hold() {
    const bool none = hold_.end_overdue();
    if (none && !planted(Bug::hold_end_releases_nothing)) release_from(released());
    return none;
  }

  // Advances the read version from `released` over all versions that are done.
  void release_from(std::uint64_t released) {
    auto read = base::shared<std::uint64_t>(words_.read);
    while (done_[(released + 1) % kWindow].load() == released + 1) {
      if (records_ != nullptr && !record_is_durable(released + 1)) [[unlikely]]
        return;
      if (read.compare_exchange_strong(released, released + 1)) ++released;
    }
  }

  VersionWords words_;
  ReleaseHold hold_;
  bool versions_ = true;
  std::uint64_t recorded_ = 0;  // the highest version of the records that are applied
  std::unique_ptr<std::atomic<std::uint64_t>[]> done_;
  const std::atomic<std::uint64_t>* durable_ = &kAllDurable;  // up to which sequence records are
  std::unique_ptr<Records> records_;                          // null: no version waits for a record
};

}  // namespace espalier::memory

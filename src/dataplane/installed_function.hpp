// SPDX-License-Identifier: Apache-2.0
// The packet function of a switch, with atomic updates: two copies, and a word that says which is
// active. An update changes the inactive copy, flips the word, and then changes the other copy
// alike. So a frame sees all of an update or nothing of it, and no thread that processes frames
// ever waits.
//
// Invariants
// I1. A copy is changed only while no thread is in it: a thread announces the copy that it enters
//     before it checks again whether that is still the active one; the controller flips the word
//     and then checks which threads are in the other one. At least one of the two sees the other.
//
// Thread: Readers any, each Reader one at a time; install() and set_addresses() one at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/assert.hpp"
#include "dataplane/packet_function.hpp"

namespace espalier::dataplane {

/// An entry of a map's tables that names another address now.
struct EntryChange {
  std::uint32_t keyed_key = 0;
  EntryPlace place;
  std::uint64_t address = 0;
  std::uint16_t node = 0;  // where the map lies on several
  [[nodiscard]] TablesName name() const { return {keyed_key, node}; }
  friend bool operator==(const EntryChange&, const EntryChange&) = default;
};

class InstalledFunction {
 public:
  /// Threads that process frames at a time.
  static constexpr std::size_t kReadersMax = 64;

  InstalledFunction() = default;
  InstalledFunction(const InstalledFunction&) = delete;
  InstalledFunction& operator=(const InstalledFunction&) = delete;

  class Reader;
  /// One for each thread that processes frames. Requires: at most kReadersMax are alive.
  [[nodiscard]] Reader make_reader();

  /// Replaces all tables. Cost: two copies, and a wait for frames that are being processed.
  void install(const PacketFunction& function);
  /// Changes entries atomically: a frame sees all of the changes or none. Requires: the places
  /// exist.
  void set_addresses(std::span<const EntryChange> changes);
  /// How often the word has flipped.
  [[nodiscard]] std::uint64_t generation() const { return active_.load(std::memory_order_acquire); }

 private:
  struct alignas(64) Slot {
    std::atomic<bool> taken{false};
    std::atomic<std::uint32_t> inside{0};  // 1 + the copy that its thread is in; 0: in none
  };
  template <class Change>
  void change_both(const Change& change);
  void wait_until_empty(std::size_t copy) const;

  std::array<PacketFunction, 2> copies_;
  std::atomic<std::uint64_t> active_{0};  // the lowest bit is the copy
  std::array<Slot, kReadersMax> slots_;
};

/// Processes frames with the copy in use.
class InstalledFunction::Reader {
 public:
  Reader(Reader&& other) noexcept : of_(other.of_), slot_(other.slot_) { other.slot_ = nullptr; }
  Reader& operator=(Reader&&) = delete;
  ~Reader() {
    if (slot_ != nullptr) slot_->taken.store(false, std::memory_order_release);
  }

  /// Calls `use` with the active function, which does not change meanwhile: for a burst of frames.
  /// Cost: two full barriers.
  template <class Use>
  void with(const Use& use) {
    std::uint64_t active = of_->active_.load(std::memory_order_acquire);
    while (true) {
      slot_->inside.store(1 + static_cast<std::uint32_t>(active & 1), std::memory_order_seq_cst);
      const std::uint64_t now = of_->active_.load(std::memory_order_seq_cst);
      if (now == active) break;
      active = now;
    }
    use(static_cast<const PacketFunction&>(of_->copies_[active & 1]));
    slot_->inside.store(0, std::memory_order_release);
  }

 private:
  friend class InstalledFunction;
  Reader(InstalledFunction* of, Slot* slot) : of_(of), slot_(slot) {}

  InstalledFunction* of_;
  Slot* slot_;
};

}  // namespace espalier::dataplane

// SPDX-License-Identifier: Apache-2.0
// Epoch-based reclamation: when may memory that was unlinked be reused, although readers take no
// locks?
//
// A participant (a thread of any process that maps the table) exposes, while it reads, the epoch at
// which it began. A reclaimer stamps what it unlinked and frees it when every exposed epoch is
// newer than the stamp. The table lies in memory that the caller provides, without pointers, so
// that participants may be other processes which map it at another address.
//
//     reader                              reclaimer
//     e = global             (acquire)    unlink x
//     slot = e               (release)    full fence; stamp = global           current()
//     LIGHT barrier                       ... any thread: global += 1          advance()
//     follow links, read                  g = global; HEAVY barrier;           oldest()
//     slot = 0               (release)    o = min(g, all slots); free x if o > stamp
//
// Why this is right. Let x carry stamp s and let oldest() return o > s.
// 1. A reader whose slot store was seen by the scan exposes e >= o > s. It read a global epoch that
//    was made after the stamp was read, hence after x was unlinked: it cannot reach x. (The fence
//    in current() is what makes it "hence": without it the unlinking store could still wait in a
//    store buffer while the stamp is read.)
// 2. A reader whose slot store was not seen: the heavy barrier makes every running thread pass a
//    full barrier between the moment it begins and the moment it ends. The slot store was not yet
//    out at that barrier, so the reads that follow it come after the barrier, and the barrier comes
//    after the unlinking (the reclaimer saw g > s): it cannot reach x.
// 3. A reader that ended stored 0, or its next epoch, with release; the scan's acquire load orders
//    its reads before the reuse.
// 4. oldest() reads the global epoch before the barrier: an epoch read after the scan could be
//    newer than that of a reader which came between.
//
// The barriers are asymmetric where the kernel has membarrier(2): the heavy side interrupts all
// registered processes (microseconds, once per batch of reclamation), and the light side is only a
// compiler barrier (enter and exit cost about 1 ns together). Elsewhere, and under ThreadSanitizer,
// which cannot see such barriers, both sides use sequentially consistent operations. All
// participants must do the same, so the creator decides and the table says it.
//
// Invariants
// I1. A slot with owner 0 exposes 0. Only its owner writes `exposed`; a sweeper first becomes it.
// I2. The exposed epoch never exceeds the epoch at which any walk of the participant began.
// I3. The global epoch starts at 2 and only grows; 0 means idle, 1 is older than everything.
//
// Progress: something is freed only after advance() moved the epoch beyond its stamp and all
// readers of that moment have moved on. A participant that stays inside holds back everything
// unlinked since (one whose process died is swept).
//
// Thread: EpochTable any; EpochSlot one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/assert.hpp"
#include "base/barrier.hpp"
#include "espalier/error.hpp"

namespace espalier::base {

/// The table's head, then `participants` slots of 64 bytes. No pointers, no padding.
///
///   0      8        12             16     24              64        72               128
///   +------+--------+--------------+------+---------------+---------+----------------+
///   | magic| version| participants | flags| 0             | global  | 0              | slots
///   +------+--------+--------------+------+---------------+---------+----------------+
struct alignas(64) EpochTableHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t participants;
  std::uint64_t flags;  // kEpochAsymmetric
  std::uint64_t reserved[5];
  std::uint64_t global_epoch;  // on a line of its own: all readers read it
  std::uint64_t reserved_global[7];
};
static_assert(sizeof(EpochTableHeader) == 128);
static_assert(offsetof(EpochTableHeader, global_epoch) == 64);
static_assert(std::has_unique_object_representations_v<EpochTableHeader>);

struct alignas(64) EpochTableSlot {
  std::uint64_t exposed;  // 0: idle
  std::uint64_t owner;    // 0: free; else pid (high 22 bits), start time of the process (42 bits)
  std::uint64_t reserved[6];
};
static_assert(sizeof(EpochTableSlot) == 64);
static_assert(offsetof(EpochTableSlot, owner) == 8);
static_assert(std::has_unique_object_representations_v<EpochTableSlot>);

inline constexpr std::uint64_t kEpochMagic = 0x6863'6f70'6570'7365;  // "espepoch"
inline constexpr std::uint32_t kEpochVersion = 1;
inline constexpr std::uint64_t kEpochAsymmetric = 1;
inline constexpr std::uint64_t kEpochFirst = 2;
inline constexpr std::uint32_t kEpochParticipantsMax = 1u << 20;

/// One participant's place in an EpochTable. Leaves it when destroyed.
/// Thread: one at a time. The table's memory must outlive it.
class EpochSlot {
 public:
  EpochSlot() = default;
  EpochSlot(EpochSlot&& other) noexcept;
  EpochSlot& operator=(EpochSlot&& other) noexcept;
  ~EpochSlot() { leave(); }

  /// Begins to read: exposes the current epoch. Links may be followed after it returns.
  /// Cost: about 1 ns with asymmetric barriers, else a full fence. Requires: idle.
  void enter() {
    ESPALIER_DEBUG_ASSERT(exposed() == 0);
    expose(now());
  }

  /// Exposes `epoch`, which must be that of the oldest walk that is still in flight. For a core
  /// with many walks: each remembers now() at its start.
  void expose(std::uint64_t epoch) {
    ESPALIER_DEBUG_ASSERT(epoch >= exposed() && epoch <= now());
    std::atomic_ref(slot_->exposed).store(epoch, std::memory_order_release);
    barrier();
  }

  /// Ends reading: nothing that was read may be used any longer.
  void exit() { std::atomic_ref(slot_->exposed).store(0, std::memory_order_release); }

  /// What this participant exposes; 0: idle.
  [[nodiscard]] std::uint64_t exposed() const {
    return std::atomic_ref(slot_->exposed).load(std::memory_order_relaxed);
  }

  /// The global epoch as a walk that starts now may record it. Not a stamp: see current().
  [[nodiscard]] std::uint64_t now() const {
    return std::atomic_ref(*global_).load(std::memory_order_acquire);
  }

  /// Whether it belongs to a table.
  [[nodiscard]] bool joined() const { return slot_ != nullptr; }

  /// Leaves the table; a copy that fork() made in a child only forgets it.
  void leave();

 private:
  friend class EpochTable;
  EpochSlot(EpochTableSlot* slot, std::uint64_t* global, std::uint64_t owner, bool asymmetric)
      : slot_(slot), global_(global), owner_(owner), asymmetric_(asymmetric) {}

  void barrier() { frequent_barrier(asymmetric_); }

  EpochTableSlot* slot_ = nullptr;
  std::uint64_t* global_ = nullptr;
  std::uint64_t owner_ = 0;
  bool asymmetric_ = false;
};

/// A view of an epoch table: cheap to copy, valid as long as the memory below it.
class EpochTable {
 public:
  /// Bytes that a table for so many participants needs. Align them to 64.
  [[nodiscard]] static constexpr std::size_t bytes(std::uint32_t participants) {
    return sizeof(EpochTableHeader) + std::size_t{participants} * sizeof(EpochTableSlot);
  }

  /// Lays a table over zeroed memory of bytes(participants), aligned to 64.
  /// Requires: 1 to kEpochParticipantsMax participants.
  static EpochTable create(std::byte* memory, std::uint32_t participants);

  /// Opens a table that another participant made. Errors: corrupt (detail: 1 too short, 2 magic,
  /// 3 version, 4 participants, 5 flags, 6 epoch), unsupported (it needs barriers that this system
  /// lacks).
  static Result<EpochTable> attach(std::byte* memory, std::size_t bytes);

  /// Takes a slot; sweeps the dead first if all are taken. Cost: system calls. Thread: any.
  /// Errors: too_many_participants (detail: how many there may be), system (detail: errno).
  Result<EpochSlot> join();

  /// The epoch with which to stamp what has been unlinked before this call.
  /// Cost: a full fence. Thread: any.
  [[nodiscard]] std::uint64_t current() const;

  /// Moves the epoch on by one; returns the epoch before. Thread: any.
  std::uint64_t advance();

  /// What carries a stamp below the returned epoch may be freed. Cost: a heavy barrier (some
  /// microseconds) and one line per slot. Thread: any.
  [[nodiscard]] std::uint64_t oldest() const;

  /// Frees the slots of processes that have died; returns how many. Cost: a file of /proc per
  /// process. Thread: any, concurrently with everything.
  std::uint32_t sweep_dead();

  [[nodiscard]] std::uint32_t participants_max() const { return count_; }
  /// Slots taken now.
  [[nodiscard]] std::uint32_t participants() const;
  /// A participant that reads.
  struct Exposed {
    std::uint32_t process = 0;  // its id
    std::uint64_t epoch = 0;
  };
  /// Those that expose an epoch now. Cost: one line per slot.
  [[nodiscard]] std::vector<Exposed> exposed() const;
  /// Whether readers need only a compiler barrier.
  [[nodiscard]] bool asymmetric() const { return asymmetric_; }

 private:
  EpochTable(std::byte* memory, std::uint32_t count, bool asymmetric);

  EpochTableHeader* header_;
  EpochTableSlot* slots_;
  std::uint32_t count_;  // copies: what others can write is read once (DESIGN §2.1 rule 14)
  bool asymmetric_;
};

}  // namespace espalier::base

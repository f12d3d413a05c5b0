// SPDX-License-Identifier: Apache-2.0
#include "base/epoch.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/places.hpp"
#include "base/process_id.hpp"

namespace espalier::base {
namespace {

/// What attach() found wrong, as the detail of Code::corrupt.
enum class Fault : std::uint32_t {
  too_short = 1,
  magic = 2,
  version = 3,
  participants = 4,
  flags = 5,
  epoch = 6,
};

std::unexpected<Error> corrupt(Fault fault) {
  return fail(Code::corrupt, static_cast<std::uint32_t>(fault));
}

}  // namespace

EpochSlot::EpochSlot(EpochSlot&& other) noexcept
    : slot_(std::exchange(other.slot_, nullptr)),
      global_(std::exchange(other.global_, nullptr)),
      owner_(std::exchange(other.owner_, 0)),
      asymmetric_(other.asymmetric_) {}

EpochSlot& EpochSlot::operator=(EpochSlot&& other) noexcept {
  if (this == &other) return *this;
  leave();
  slot_ = std::exchange(other.slot_, nullptr);
  global_ = std::exchange(other.global_, nullptr);
  owner_ = std::exchange(other.owner_, 0);
  asymmetric_ = other.asymmetric_;
  return *this;
}

void EpochSlot::leave() {
  EpochTableSlot* const slot = std::exchange(slot_, nullptr);
  if (slot == nullptr) return;
  // In a child after fork() this is a copy, and the slot is still the parent's.
  if (ProcessId{owner_}.pid() != static_cast<std::uint32_t>(::getpid())) return;
  std::atomic_ref(slot->exposed).store(0, std::memory_order_release);
  std::atomic_ref(slot->owner).store(0, std::memory_order_release);
}

EpochTable::EpochTable(std::byte* memory, std::uint32_t count, bool asymmetric)
    : header_(reinterpret_cast<EpochTableHeader*>(memory)),
      slots_(reinterpret_cast<EpochTableSlot*>(memory + sizeof(EpochTableHeader))),
      count_(count),
      asymmetric_(asymmetric) {}

EpochTable EpochTable::create(std::byte* memory, std::uint32_t participants) {
  ESPALIER_ASSERT(participants > 0 && participants <= kEpochParticipantsMax);
  ESPALIER_ASSERT(std::bit_cast<std::uintptr_t>(memory) % alignof(EpochTableHeader) == 0);
  const EpochTable table(memory, participants, register_asymmetric_barriers());
  EpochTableHeader& header = *table.header_;
  header.version = kEpochVersion;
  header.participants = participants;
  header.flags = table.asymmetric() ? kEpochAsymmetric : 0;
  header.global_epoch = kEpochFirst;
  // Last: a participant that sees the magic sees the rest.
  std::atomic_ref(header.magic).store(kEpochMagic, std::memory_order_release);
  return table;
}

Result<EpochTable> EpochTable::attach(std::byte* memory, std::size_t bytes) {
  const bool aligned = std::bit_cast<std::uintptr_t>(memory) % alignof(EpochTableHeader) == 0;
  if (bytes < sizeof(EpochTableHeader) || !aligned) return corrupt(Fault::too_short);
  auto& header = *reinterpret_cast<EpochTableHeader*>(memory);
  if (std::atomic_ref(header.magic).load(std::memory_order_acquire) != kEpochMagic) {
    return corrupt(Fault::magic);
  }
  // One read of each field; the epoch, which others move, is not among them.
  const std::uint32_t version = header.version;
  const std::uint32_t participants = std::atomic_ref(header.participants).load();
  const std::uint64_t flags = std::atomic_ref(header.flags).load();
  if (version != kEpochVersion) return corrupt(Fault::version);
  if (participants == 0 || participants > kEpochParticipantsMax) {
    return corrupt(Fault::participants);
  }
  if (bytes < EpochTable::bytes(participants)) return corrupt(Fault::too_short);
  if ((flags & ~kEpochAsymmetric) != 0) return corrupt(Fault::flags);
  if (std::atomic_ref(header.global_epoch).load(std::memory_order_relaxed) < kEpochFirst) {
    return corrupt(Fault::epoch);
  }
  const bool asymmetric = (flags & kEpochAsymmetric) != 0;
  if (asymmetric && !register_asymmetric_barriers()) return fail(Code::unsupported);
  return EpochTable(memory, participants, asymmetric);
}

Result<EpochSlot> EpochTable::join() {
  const auto self = this_process();
  if (!self) return std::unexpected(self.error());
  // Again, and not only in create(): registration does not outlive every fork().
  if (asymmetric() && !register_asymmetric_barriers()) return fail(Code::unsupported);
  do {
    for (std::uint32_t i = 0; i < count_; ++i) {
      std::atomic_ref owner(slots_[i].owner);
      std::uint64_t none = 0;
      if (owner.load(std::memory_order_relaxed) != none) continue;
      if (!owner.compare_exchange_strong(none, self->bits, std::memory_order_acq_rel)) continue;
      return EpochSlot(&slots_[i], &header_->global_epoch, self->bits, asymmetric());
    }
  } while (sweep_dead() > 0);
  return full(Places::participants, count_);
}

std::uint64_t EpochTable::current() const {
  full_fence();  // see 1. in the header's file comment
  return std::atomic_ref(header_->global_epoch).load(std::memory_order_acquire);
}

std::uint64_t EpochTable::advance() {
  return std::atomic_ref(header_->global_epoch).fetch_add(1, std::memory_order_acq_rel);
}

std::uint64_t EpochTable::oldest() const {
  std::uint64_t oldest = std::atomic_ref(header_->global_epoch).load(std::memory_order_acquire);
  rare_barrier(asymmetric());
  for (std::uint32_t i = 0; i < count_; ++i) {
    const auto exposed = std::atomic_ref(slots_[i].exposed).load(std::memory_order_acquire);
    if (exposed != 0) oldest = std::min(oldest, exposed);
  }
  return oldest;
}

std::uint32_t EpochTable::sweep_dead() {
  const auto self = this_process();
  if (!self) return 0;
  std::uint32_t swept = 0;
  ProcessId known = *self;  // many slots in a row have the same owner: ask once
  bool known_ended = false;
  for (std::uint32_t i = 0; i < count_; ++i) {
    std::atomic_ref owner(slots_[i].owner);
    ProcessId process{owner.load(std::memory_order_acquire)};
    if (process.bits == 0) continue;
    if (process != known) {
      known = process;
      known_ended = has_ended(process);
    }
    if (!known_ended) continue;
    // Become the owner first: of two sweepers one wins, and no thread can join in between. A
    // sweeper that dies here is swept in its turn.
    if (!owner.compare_exchange_strong(process.bits, self->bits, std::memory_order_acq_rel)) {
      continue;
    }
    std::atomic_ref(slots_[i].exposed).store(0, std::memory_order_release);
    owner.store(0, std::memory_order_release);
    ++swept;
  }
  return swept;
}

std::uint32_t EpochTable::participants() const {
  std::uint32_t taken = 0;
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (std::atomic_ref(slots_[i].owner).load(std::memory_order_relaxed) != 0) ++taken;
  }
  return taken;
}

std::vector<EpochTable::Exposed> EpochTable::exposed() const {
  std::vector<Exposed> readers;
  for (std::uint32_t i = 0; i < count_; ++i) {
    const auto epoch = std::atomic_ref(slots_[i].exposed).load(std::memory_order_relaxed);
    const ProcessId owner{std::atomic_ref(slots_[i].owner).load(std::memory_order_relaxed)};
    if (epoch != 0 && owner.bits != 0) readers.push_back({owner.pid(), epoch});
  }
  return readers;
}

}  // namespace espalier::base

// SPDX-License-Identifier: Apache-2.0
#include "dataplane/installed_function.hpp"

#include <thread>

#include "dataplane/planted_dataplane_bugs.hpp"

namespace espalier::dataplane {

InstalledFunction::Reader InstalledFunction::make_reader() {
  Slot* free = nullptr;
  for (Slot& slot : slots_) {
    if (slot.taken.exchange(true, std::memory_order_acquire)) continue;
    free = &slot;
    break;
  }
  ESPALIER_ASSERT(free != nullptr);
  return {this, free};
}

void InstalledFunction::install(const PacketFunction& function) {
  change_both([&function](PacketFunction& copy) { copy = function; });
}

void InstalledFunction::set_addresses(std::span<const EntryChange> changes) {
  change_both([changes](PacketFunction& copy) {
    for (const EntryChange& change : changes) {
      copy.set_address(change.name(), change.place, change.address);
    }
  });
}

template <class Change>
void InstalledFunction::change_both(const Change& change) {
  const std::uint64_t active = active_.load(std::memory_order_relaxed);
  const std::size_t idle = 1 - (active & 1);
  wait_until_empty(idle);  // a thread may have entered it by an old word, to leave it again
  change(copies_[idle]);
  active_.store(active + 1, std::memory_order_seq_cst);
  wait_until_empty(1 - idle);
  change(copies_[1 - idle]);
}

void InstalledFunction::wait_until_empty(std::size_t copy) const {
  if (base::planted(Bug::flip_waits_for_nobody)) return;
  for (const Slot& slot : slots_) {
    while (slot.inside.load(std::memory_order_seq_cst) == copy + 1) std::this_thread::yield();
  }
}

}  // namespace espalier::dataplane

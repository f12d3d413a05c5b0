// SPDX-License-Identifier: Apache-2.0
// Sequencers and counters as their records say (kinds/sequencer/redo_record.hpp).
#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "kinds/sequencer/counters.hpp"
#include "kinds/sequencer/redo_record.hpp"
#include "kinds/sequencer/sequencer.hpp"

namespace espalier::sequencer {

using catalog::RedoFault;

Result<void> Sequencer::apply_redo(std::string_view bytes) {
  ESPALIER_ASSERT(redo() == nullptr);  // the records of what is applied are there
  const auto redo = read_sequencer_redo(bytes);
  if (!redo) return std::unexpected(redo.error());
  if (redo->head.object != id_) return catalog::corrupt(RedoFault::object);
  const std::lock_guard lock(mutex_);
  if (dropped_ || redo->epoch < epoch_) return {};
  if (redo->epoch > epoch_) {
    epoch_ = redo->epoch;
    first_ = redo->first;
    next_ = redo->next;
    mark_ = 0;
    sealed_ = overwritten_ = false;
    page_.reset();
  }
  const bool reserves = redo->head.type == static_cast<std::uint8_t>(RedoType::reserved);
  if (reserves) {
    mark_ = std::max(mark_, redo->next);
  } else {
    next_ = std::max(next_, redo->next);
  }
  sealed_ = sealed_ || (redo->flags & wire::kSequencerIsSealed) != 0;
  if (sealed_) mark_ = 0;  // the sealing thread knew all numbers taken
  overwritten_ = overwritten_ || (redo->flags & wire::kSequencerOverwritten) != 0;
  word().store(sealed_ ? wire::sequencer_word(epoch_, 0) | wire::kSequencerSeal
                       : wire::sequencer_word(epoch_, next_),
               std::memory_order_release);
  return {};
}

// What a record says that a sequencer is made of is its first number.
Result<std::shared_ptr<Sequencer>> restore_sequencer(catalog::Catalog& catalog,
                                                     const catalog::CreatedObject& created) {
  wire::PayloadReader reader(created.form);
  const auto first = reader.take<std::uint64_t>();
  if (!reader.complete() || first > wire::kSequencerEnd) {
    return catalog::corrupt(RedoFault::form);
  }
  return catalog.restore<Sequencer>(
      created, [&](std::uint32_t id, std::string own_name) -> Result<std::shared_ptr<Sequencer>> {
        if (Sequencer::live() >= Sequencer::kMost) {
          return fail(Code::out_of_memory, Sequencer::kMost);
        }
        return std::make_shared<Sequencer>(id, std::move(own_name), first);
      });
}

Result<void> Counters::apply_redo(std::string_view record) {
  const auto counted = read_counted(record);
  if (!counted) return std::unexpected(counted.error());
  const std::lock_guard lock(mutex_);
  if (counted->name.empty()) {
    raise_floor(counted->next);
    return {};
  }
  std::uint64_t* const next = next_of(counted->name);
  if (next == nullptr) return fail(Code::out_of_memory, kMost);
  *next = std::max(*next, counted->next);
  return {};
}

}  // namespace espalier::sequencer

// SPDX-License-Identifier: Apache-2.0
// Sequencers and counters out of their records.
#include "catalog/apply_record.hpp"
#include "engine/redo_target.hpp"
#include "kinds/sequencer/counters.hpp"
#include "kinds/sequencer/offload/sequencer_copy.hpp"
#include "kinds/sequencer/offload/sequencer_offloads.hpp"
#include "kinds/sequencer/sequencer.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {
namespace {

Result<void> restore_a_sequencer(RedoTarget& target, const catalog::CreatedObject& created) {
  const auto made = sequencer::restore_sequencer(target.services().catalog(), created);
  return made ? Result<void>() : std::unexpected(made.error());
}

// Those of object 0 are of counters.
Result<void> apply_to_numbers(RedoTarget& target, const catalog::RedoHead& head,
                              std::string_view record) {
  if (head.object == 0) {
    return target.services().store.parts.of<sequencer::Counters>().apply_redo(record);
  }
  return catalog::apply_to<sequencer::Sequencer>(
      target.services().catalog(), head.object,
      [&](sequencer::Sequencer& numbers) { return numbers.apply_redo(record); });
}

}  // namespace

const KindRedo kSequencerRedo{restore_a_sequencer, apply_to_numbers, copy_a_sequencer,
                              copy_counters};

}  // namespace espalier::offload

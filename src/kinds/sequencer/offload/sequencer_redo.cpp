// SPDX-License-Identifier: Apache-2.0
// Sequencers and counters out of their records.
#include <span>
#include <string>
#include <vector>

#include "catalog/apply_record.hpp"
#include "catalog/redo_effect.hpp"
#include "engine/redo_target.hpp"
#include "kinds/sequencer/counters.hpp"
#include "kinds/sequencer/offload/sequencer_copy.hpp"
#include "kinds/sequencer/offload/sequencer_offloads.hpp"
#include "kinds/sequencer/redo_record.hpp"
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

std::string_view verb_of(sequencer::RedoType type) {
  switch (type) {
    case sequencer::RedoType::taken: return "take";
    case sequencer::RedoType::sealed: return "seal";
    case sequencer::RedoType::advanced: return "advance";
    case sequencer::RedoType::counted: return "count";
    case sequencer::RedoType::reserved: return "reserve";
    case sequencer::RedoType::invalid: break;
  }
  return "none";
}

Result<void> describe_numbers(std::string_view record, const TakeEffect& take) {
  const auto head = catalog::read_redo_head(record, ObjectKind::sequencer);
  if (!head) return std::unexpected(head.error());
  if (head->type == static_cast<std::uint8_t>(sequencer::RedoType::counted)) {
    const auto counted = sequencer::read_counted(record);
    if (!counted) return std::unexpected(counted.error());
    const catalog::RedoNumber numbers[] = {{"next", counted->next}};
    take({verb_of(sequencer::RedoType::counted), counted->name, numbers});
    return {};
  }
  const auto redo = sequencer::read_sequencer_redo(record);
  if (!redo) return std::unexpected(redo.error());
  const catalog::RedoNumber numbers[] = {
      {"epoch", redo->epoch}, {"first", redo->first}, {"next", redo->next}};
  take({verb_of(static_cast<sequencer::RedoType>(redo->head.type)), std::nullopt, numbers});
  return {};
}

std::vector<std::string> audit_a_sequencer(catalog::Object& object) {
  const wire::SequencerFacts facts = static_cast<sequencer::Sequencer&>(object).facts();
  std::vector<std::string> wrong;
  if (facts.first > facts.next) wrong.emplace_back("its epoch begins above its next number");
  if (facts.next > wire::kSequencerEnd) wrong.emplace_back("its next number is none");
  if (facts.epoch == 0 || facts.epoch > wire::kSequencerEpochMax) {
    wrong.emplace_back("its epoch is none");
  }
  return wrong;
}

}  // namespace

const KindRedo kSequencerRedo{.restore = restore_a_sequencer,
                              .apply = apply_to_numbers,
                              .describe = describe_numbers,
                              .audit = audit_a_sequencer,
                              .copy = copy_a_sequencer,
                              .copy_others = copy_counters,
                              .others_after_loss = counters_after_loss};

}  // namespace espalier::offload

// SPDX-License-Identifier: Apache-2.0
#include "kinds/sequencer/offload/sequencer_copy.hpp"

#include <string_view>
#include <utility>

#include "catalog/catalog.hpp"
#include "kinds/sequencer/counters.hpp"
#include "kinds/sequencer/redo_record.hpp"
#include "kinds/sequencer/sequencer.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {
namespace {

/// Records are handed over under the lock under which this looks.
class SequencerCopy final : public ObjectCopy {
 public:
  explicit SequencerCopy(std::shared_ptr<sequencer::Sequencer> numbers)
      : numbers_(std::move(numbers)) {}

  Result<CopyStep> next(CopyPiece& piece) override {
    const auto facts = numbers_->known_facts();
    if (!facts) return CopyStep::done;  // it was dropped
    const auto room = piece.add(sizeof(sequencer::SequencerRecord));
    if (room.empty()) return CopyStep::more;
    const bool is_sealed = (facts->flags & wire::kSequencerIsSealed) != 0;
    sequencer::write_facts(room, numbers_->id(),
                           is_sealed ? sequencer::RedoType::sealed : sequencer::RedoType::taken,
                           *facts);
    return CopyStep::done;
  }

 private:
  const std::shared_ptr<sequencer::Sequencer> numbers_;
};

class CountersCopy final : public ObjectCopy {
 public:
  explicit CountersCopy(const sequencer::Counters& counters) : counters_(counters) {}

  Result<CopyStep> next(CopyPiece& piece) override {
    const auto take = [&](std::string_view name, std::uint64_t next) {
      const auto room = piece.add(sizeof(sequencer::CounterRecord) + name.size());
      if (!room.empty()) sequencer::write_counted(room, name, next);
    };
    while (!piece.full()) {
      if (!counters_.each_some(place_, take)) return CopyStep::done;
    }
    return CopyStep::more;
  }

 private:
  const sequencer::Counters& counters_;
  sequencer::Counters::Place place_;
};

}  // namespace

Result<std::unique_ptr<ObjectCopy>> copy_a_sequencer(
    Services&, const std::shared_ptr<const catalog::Entry>& entry) {
  return std::make_unique<SequencerCopy>(
      std::static_pointer_cast<sequencer::Sequencer>(entry->object));
}

std::unique_ptr<ObjectCopy> copy_counters(Services& services) {
  return std::make_unique<CountersCopy>(services.store.parts.of<sequencer::Counters>());
}

}  // namespace espalier::offload

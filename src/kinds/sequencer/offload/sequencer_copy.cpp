// SPDX-License-Identifier: Apache-2.0
#include "kinds/sequencer/offload/sequencer_copy.hpp"

#include <algorithm>
#include <cstdint>
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
    std::uint64_t mark = 0;
    auto facts = numbers_->known_facts(&mark);
    if (!facts) return CopyStep::done;  // it was dropped
    const bool is_sealed = (facts->flags & wire::kSequencerIsSealed) != 0;
    const auto type = is_sealed ? sequencer::RedoType::sealed : sequencer::RedoType::taken;
    if (!add(piece, type, *facts)) return CopyStep::more;
    facts->next = std::max(facts->next, mark);
    const bool whole = mark == 0 || add(piece, sequencer::RedoType::reserved, *facts);
    return whole ? CopyStep::done : CopyStep::more;
  }

 private:
  bool add(CopyPiece& piece, sequencer::RedoType type, const wire::SequencerFacts& facts) {
    const auto room = piece.add(sizeof(sequencer::SequencerRecord));
    if (!room.empty()) sequencer::write_facts(room, numbers_->id(), type, facts);
    return !room.empty();
  }

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
    if (!std::exchange(floor_told_, true)) {
      if (const std::uint64_t floor = counters_.floor(); floor != 0) take({}, floor);
    }
    while (!piece.full()) {
      if (!counters_.each_some(place_, take)) return CopyStep::done;
    }
    return CopyStep::more;
  }

 private:
  const sequencer::Counters& counters_;
  sequencer::Counters::Place place_;
  bool floor_told_ = false;
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

Result<void> counters_after_loss(Services& services) {
  auto& counters = services.store.parts.of<sequencer::Counters>();
  return counters.go_on_after_loss(services.catalog().redo());
}

}  // namespace espalier::offload

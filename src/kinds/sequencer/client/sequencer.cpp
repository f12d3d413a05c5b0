// SPDX-License-Identifier: Apache-2.0
#include "espalier/sequencer.hpp"

#include <algorithm>
#include <utility>

#include "channel/public_call.hpp"
#include "kinds/sequencer/client/sequencers.hpp"

namespace espalier {
namespace {

using client::call;
using client::description_of;

// Of several threads the one that knows the newest epoch is right.
void go_on_in(client::SequencerImpl& impl, std::uint32_t epoch) {
  std::uint32_t known = impl.known_epoch.load();
  while (known < epoch && !impl.known_epoch.compare_exchange_weak(known, epoch)) {
  }
}

}  // namespace

SequencerDescription client::description_of(std::string name, const wire::SequencerFacts& facts) {
  SequencerDescription made;
  made.name = std::move(name);
  made.epoch = facts.epoch;
  made.sealed = (facts.flags & wire::kSequencerIsSealed) != 0;
  made.overwritten = (facts.flags & wire::kSequencerOverwritten) != 0;
  made.first = facts.first;
  made.next = facts.next;
  made.requests = facts.requests;
  made.node_adds = facts.adds;
  return made;
}

const std::string& Sequencer::name() const { return impl_->name(); }

std::uint32_t Sequencer::epoch() const { return impl_->known_epoch.load(); }

Result<NumberRange> Sequencer::take(std::uint32_t count) {
  if (count == 0) return fail(Code::invalid_argument);
  const auto taken = call(*impl_, [&] { return impl_->take(epoch(), count); });
  if (!taken) return std::unexpected(taken.error());
  return NumberRange{taken->first, count, taken->epoch};
}

Result<SequencerDescription> Sequencer::seal() {
  return call(*impl_, [&]() -> Result<SequencerDescription> {
    std::string own_name = name();  // before it is sealed, for there may be no memory for it
    const auto facts = impl_->seal(epoch());
    if (!facts) return std::unexpected(facts.error());
    return description_of(std::move(own_name), *facts);
  });
}

Result<SequencerDescription> Sequencer::advance(std::uint64_t at_least) {
  if (at_least > kEnd) return fail(Code::invalid_argument);
  return call(*impl_, [&]() -> Result<SequencerDescription> {
    std::string own_name = name();
    const auto facts = impl_->advance(epoch(), at_least);
    if (!facts) return std::unexpected(facts.error());
    go_on_in(*impl_, facts->epoch);
    return description_of(std::move(own_name), *facts);
  });
}

Result<SequencerDescription> Sequencer::follow() {
  auto now = describe();
  if (now) go_on_in(*impl_, now->epoch);
  return now;
}

Result<SequencerDescription> Sequencer::describe() const {
  return call(*impl_, [&]() -> Result<SequencerDescription> {
    const auto facts = impl_->facts();
    if (!facts) return std::unexpected(facts.error());
    return description_of(name(), *facts);
  });
}

}  // namespace espalier

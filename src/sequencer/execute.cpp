// SPDX-License-Identifier: Apache-2.0
#include "sequencer/execute.hpp"

#include <new>
#include <utility>

namespace espalier::sequencer_calls {

using sequencer::Sequencer;

Result<std::shared_ptr<Sequencer>> obtain(catalog::Catalog& catalog, const Create& asked) {
  return sequencer::create_sequencer(catalog, asked.name, asked.first);
}

Result<std::shared_ptr<Sequencer>> obtain(catalog::Catalog& catalog, const Open& asked) {
  return catalog.open<Sequencer>(asked.name);
}

Result<Opened> execute(Sequencer& of, const Open&) {
  const auto facts = of.known_facts();
  if (!facts) return std::unexpected(facts.error());
  return Opened{of.id(), *facts};
}

Result<Taken> execute(Sequencer& of, const Take& asked) {
  const auto taken = of.take(asked.epoch, asked.count);
  if (!taken) return std::unexpected(taken.error());
  return Taken{taken->first, taken->epoch};
}

Result<Facts> execute(Sequencer& of, const Seal& asked) {
  const auto facts = of.seal(asked.epoch);
  if (!facts) return std::unexpected(facts.error());
  return Facts{*facts};
}

std::expected<Facts, TableError> execute(Sequencer& of, const Advance& asked) {
  const auto facts = of.advance(asked.to.epoch, asked.to.at_least);
  if (facts) return Facts{*facts};
  TableError refused(facts.error());
  if (facts.error() == Error{Code::invalid_argument, 0, 1}) {
    try {
      refused.words =
          "a client wrote over the word, so that nobody knows which numbers were given: "
          "name one above which all are free";
    } catch (const std::bad_alloc&) {  // the code says enough
    }
  }
  return std::unexpected(std::move(refused));
}

}  // namespace espalier::sequencer_calls

// SPDX-License-Identifier: Apache-2.0
// Execution of the calls of sequencers, for nodes and for stores of this process alike.
//
// Thread: any.
#pragma once

#include <memory>

#include "catalog/catalog.hpp"
#include "espalier/table_error.hpp"
#include "kinds/sequencer/calls.hpp"
#include "kinds/sequencer/sequencer.hpp"

namespace espalier::sequencer_calls {

[[nodiscard]] Result<std::shared_ptr<sequencer::Sequencer>> obtain(catalog::Catalog& catalog,
                                                                   const Create& asked);
[[nodiscard]] Result<std::shared_ptr<sequencer::Sequencer>> obtain(catalog::Catalog& catalog,
                                                                   const Open& asked);

// Errors: as the calls of Sequencer.
[[nodiscard]] Result<Opened> execute(sequencer::Sequencer& of, const Open& asked);
[[nodiscard]] Result<Taken> execute(sequencer::Sequencer& of, const Take& asked);
[[nodiscard]] Result<Facts> execute(sequencer::Sequencer& of, const Seal& asked);
[[nodiscard]] std::expected<Facts, TableError> execute(sequencer::Sequencer& of,
                                                       const Advance& asked);

}  // namespace espalier::sequencer_calls

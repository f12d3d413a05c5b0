// SPDX-License-Identifier: Apache-2.0
// Numbered transactions, in this process and on a node (espalier/transaction.hpp).
//
// Thread: any.
#pragma once

#include "channel/channel.hpp"
#include "client/own_numbers.hpp"
#include "client/transaction_bytes.hpp"
#include "espalier/transaction.hpp"

namespace espalier::client {

/// For objects of this process. Errors: as Store::transact; std::bad_alloc.
Result<Transacted> transact_numbered_here(channel::Channel& channel, const TransactionBytes& asked,
                                          const NumberedClient& client);
/// On a node; if the connection is lost, retries for a while. Errors: as above.
Result<Transacted> transact_numbered(channel::Channel& channel, const TransactionBytes& asked,
                                     const NumberedClient& client);
/// The same with a number of the store's own, or without one if it writes nothing.
/// Errors: also unsupported (an older node: OwnNumbers::are_known()).
Result<Transacted> transact_with_own_number(channel::Channel& channel, OwnNumbers& numbers,
                                            const TransactionBytes& asked);

}  // namespace espalier::client

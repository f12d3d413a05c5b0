// SPDX-License-Identifier: Apache-2.0
// The client's side of mutual authentication (wire/link_proof.hpp), independent of the transport.
//
// Thread: any; no state.
#pragma once

#include <cstdint>

#include "channel/rings/known_secret.hpp"
#include "wire/link_proof.hpp"

namespace espalier::client {

/// The error if the node has not proven that it knows the secret.
[[nodiscard]] inline Error node_not_proven() { return {Code::not_permitted, 0, 6}; }

/// Answers a challenge: proves knowledge of this name's secret. Errors: unsupported (no libcrypto),
/// system.
Result<wire::LinkProof> make_proof(const KnownSecret& secret, const wire::LinkChallenge& challenge,
                                   std::uint32_t client_pair);

/// Checks that the node knows the secret, too. Errors: not_permitted (detail 6: it does not; else
/// the node's reason for refusal), unsupported, and the node's other reasons for refusal.
Result<void> check_node_proof(const KnownSecret& secret, const wire::LinkChallenge& challenge,
                              const wire::LinkProof& proof, const wire::LinkProven& proven);

}  // namespace espalier::client

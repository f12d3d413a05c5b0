// SPDX-License-Identifier: Apache-2.0
// The client's side of a proof (wire/link_proof.hpp), whatever carries its messages.
//
// Thread: any; no state.
#pragma once

#include <cstdint>

#include "channel/rings/known_secret.hpp"
#include "wire/link_proof.hpp"

namespace espalier::client {

/// What a client says of a node that has not proven that it knows the secret.
[[nodiscard]] inline Error node_not_proven() { return {Code::not_permitted, 0, 6}; }

/// Answers a challenge: this name's secret is known. Errors: unsupported (no libcrypto), system.
Result<wire::LinkProof> make_proof(const KnownSecret& secret, const wire::LinkChallenge& challenge,
                                   std::uint32_t client_pair);

/// Whether the node knows the secret, too. Errors: not_permitted (detail 6: it does not; else why
/// it refused), unsupported, and why else it refused.
Result<void> check_node_proof(const KnownSecret& secret, const wire::LinkChallenge& challenge,
                              const wire::LinkProof& proof, const wire::LinkProven& proven);

}  // namespace espalier::client

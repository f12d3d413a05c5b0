// SPDX-License-Identifier: Apache-2.0
// The node's side of a proof (wire/link_proof.hpp), independent of the transport.
//
// Thread: any; no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "engine/secrets.hpp"
#include "wire/link_proof.hpp"

namespace espalier::offload {

/// Random numbers that no client can guess.
using Draw = std::function<Result<std::uint64_t>()>;

/// Makes a challenge with a fresh nonce. Errors: those of `draw`.
Result<wire::LinkChallenge> make_challenge(std::uint64_t node_id, std::uint32_t node_pair,
                                           const Draw& draw);

/// Parses the proof in a message. Errors: invalid_argument (there is none).
Result<wire::LinkProof> read_proof(std::span<const std::byte> message);
/// The name that a proof claims; empty: no valid one.
[[nodiscard]] std::string_view name_of(const wire::LinkProof& proof);

/// Creates the session of an authenticated client, with the key derived from the proof.
using Grant =
    std::function<Result<wire::LinkToken>(const Secrets::Owner&, const crypto::SecretBytes& key)>;
/// Checks a proof, and proves in return that the node knows the secret. Every wrong proof gets the
/// same refusal at the same cost, whether the name exists or not. Errors: not_permitted (detail 5),
/// unsupported (no libcrypto), those of `grant`, and system if no memory can be locked.
Result<wire::LinkProven> answer_proof(const Secrets& secrets, const wire::LinkChallenge& challenge,
                                      const wire::LinkProof& proof, const Grant& grant);
/// The answer to a proof that was not accepted.
[[nodiscard]] wire::LinkProven refusal_of_proof(const Error& error);

}  // namespace espalier::offload

// SPDX-License-Identifier: Apache-2.0
// The node's side of a proof (wire/link_proof.hpp), whatever carries its messages.
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

/// A challenge whose nonce nobody has had. Errors: those of `draw`.
Result<wire::LinkChallenge> make_challenge(std::uint64_t node_id, std::uint32_t node_pair,
                                           const Draw& draw);

/// The proof in a message. Errors: invalid_argument (it has none).
Result<wire::LinkProof> read_proof(std::span<const std::byte> message);
/// The name that a proof says; empty: none that can be.
[[nodiscard]] std::string_view name_of(const wire::LinkProof& proof);

/// Makes what a client gets who has proven that it knows a secret, with the key of the session that
/// comes of the proof.
using Grant =
    std::function<Result<wire::LinkToken>(const Secrets::Owner&, const crypto::SecretBytes& key)>;
/// Checks a proof, and proves in return that the node knows the secret. Every wrong proof is
/// refused by the same words, and has cost as much, whether there is such a name or not.
/// Errors: not_permitted (detail 5), unsupported (no libcrypto), those of `grant`, and where no
/// memory can be locked system.
Result<wire::LinkProven> answer_proof(const Secrets& secrets, const wire::LinkChallenge& challenge,
                                      const wire::LinkProof& proof, const Grant& grant);
/// What a client hears of a proof that was not accepted.
[[nodiscard]] wire::LinkProven refusal_of_proof(const Error& error);

}  // namespace espalier::offload

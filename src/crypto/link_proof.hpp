// SPDX-License-Identifier: Apache-2.0
// The signatures by which client and node prove to each other that they know a secret
// (wire/link_proof.hpp).
//
// Thread: any.
#pragma once

#include <cstdint>

#include "crypto/credential.hpp"
#include "crypto/hmac.hpp"
#include "wire/link_proof.hpp"

namespace espalier::crypto {

/// The client's: of a challenge, and of its own proof but for the digest. Errors: unsupported.
[[nodiscard]] Result<Digest> client_digest(const SecretBytes& secret,
                                           const wire::LinkChallenge& challenge,
                                           const wire::LinkProof& proof);
/// The node's: of all messages before, and of its answer but for the digest.
[[nodiscard]] Result<Digest> node_digest(const SecretBytes& secret,
                                         const wire::LinkChallenge& challenge,
                                         const wire::LinkProof& proof,
                                         const wire::LinkProven& proven);
/// The key of the session that comes of it, which is never sent.
[[nodiscard]] Result<void> session_key(const SecretBytes& secret,
                                       const wire::LinkChallenge& challenge,
                                       const wire::LinkProof& proof, SecretBytes& key);
/// The mark of a hello of that session.
[[nodiscard]] Result<std::uint64_t> hello_mark(const SecretBytes& key,
                                               const wire::LinkHello& hello);

}  // namespace espalier::crypto

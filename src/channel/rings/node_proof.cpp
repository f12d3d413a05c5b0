// SPDX-License-Identifier: Apache-2.0
#include "channel/rings/node_proof.hpp"

#include <algorithm>

#include "channel/rings/link_welcome.hpp"
#include "channel/rings/planted_client_bugs.hpp"
#include "crypto/link_proof.hpp"

namespace espalier::client {

Result<wire::LinkProof> make_proof(const KnownSecret& secret, const wire::LinkChallenge& challenge,
                                   std::uint32_t client_pair) {
  wire::LinkProof proof{};
  proof.magic = wire::kProofMagic;
  proof.step = static_cast<std::uint32_t>(wire::ProofStep::proof);
  proof.client_pair = client_pair;
  if (!planted(Bug::proof_nonce_repeated)) {
    if (auto drawn = crypto::draw_bytes(proof.nonce); !drawn) {
      return std::unexpected(drawn.error());
    }
  }
  std::ranges::copy(secret.name(), proof.name.begin());
  const auto digest = crypto::client_digest(secret.bytes(), challenge, proof);
  if (!digest) return std::unexpected(digest.error());
  proof.digest = *digest;
  return proof;
}

Result<void> check_node_proof(const KnownSecret& secret, const wire::LinkChallenge& challenge,
                              const wire::LinkProof& proof, const wire::LinkProven& proven) {
  if (proven.code != 0) return std::unexpected(refusal_of(proven.code, proven.detail));
  const auto digest = crypto::node_digest(secret.bytes(), challenge, proof, proven);
  if (!digest) return std::unexpected(digest.error());
  const bool same =
      crypto::equal_in_secret(*digest, proven.digest) || planted(Bug::node_proof_not_checked);
  if (!same) return std::unexpected(node_not_proven());
  return {};
}

}  // namespace espalier::client

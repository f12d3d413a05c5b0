// SPDX-License-Identifier: Apache-2.0
#include "engine/proof_check.hpp"

#include <cstring>
#include <optional>

#include "crypto/link_proof.hpp"
#include "fabric/planted_fabric_bugs.hpp"

namespace espalier::offload {
namespace {

wire::LinkProven blank_answer() {
  wire::LinkProven answer{};
  answer.magic = wire::kProofMagic;
  answer.step = static_cast<std::uint32_t>(wire::ProofStep::proven);
  return answer;
}

}  // namespace

Result<wire::LinkChallenge> make_challenge(std::uint64_t node_id, std::uint32_t node_pair,
                                           const Draw& draw) {
  wire::LinkChallenge challenge{};
  challenge.magic = wire::kProofMagic;
  challenge.step = static_cast<std::uint32_t>(wire::ProofStep::challenge);
  challenge.node_pair = node_pair;
  challenge.node_id = node_id;
  const bool drawn_anew = !fabric::planted(fabric::Bug::challenge_repeated);
  for (std::size_t at = 0; drawn_anew && at < challenge.nonce.size(); at += sizeof(std::uint64_t)) {
    const auto drawn = draw();
    if (!drawn) return std::unexpected(drawn.error());
    std::memcpy(challenge.nonce.data() + at, &*drawn, sizeof *drawn);
  }
  return challenge;
}

Result<wire::LinkProof> read_proof(std::span<const std::byte> message) {
  wire::LinkProof proof{};
  if (message.size() != sizeof proof) return fail(Code::invalid_argument);
  std::memcpy(&proof, message.data(), sizeof proof);
  const bool is_proof = proof.magic == wire::kProofMagic &&
                        proof.step == static_cast<std::uint32_t>(wire::ProofStep::proof);
  if (!is_proof) return fail(Code::invalid_argument);
  return proof;
}

// The name fills its field, or is padded with zeros.
std::string_view name_of(const wire::LinkProof& proof) {
  const std::string_view all(proof.name.data(), proof.name.size());
  const std::string_view name = all.substr(0, all.find('\0'));
  const bool ends = all.find_first_not_of('\0', name.size()) == std::string_view::npos;
  return ends && crypto::is_credential_name(name) ? name : std::string_view();
}

Result<wire::LinkProven> answer_proof(const Secrets& secrets, const wire::LinkChallenge& challenge,
                                      const wire::LinkProof& proof, const Grant& grant) {
  const auto secret = crypto::Secret<crypto::SecretBytes>::make();
  if (!secret) return std::unexpected(secret.error());
  const std::optional<Secrets::Owner> owner = secrets.find(name_of(proof), **secret);
  const auto digest = crypto::client_digest(**secret, challenge, proof);
  if (!digest) return std::unexpected(digest.error());
  const bool same = crypto::equal_in_secret(*digest, proof.digest) ||
                    fabric::planted(fabric::Bug::proof_not_checked);
  if (!same || !owner) return fail(Code::not_permitted, 5);
  const auto key = crypto::Secret<crypto::SecretBytes>::make();
  if (!key) return std::unexpected(key.error());
  if (auto made = crypto::session_key(**secret, challenge, proof, **key); !made) {
    return std::unexpected(made.error());
  }
  const auto token = grant(*owner, **key);
  if (!token) return std::unexpected(token.error());
  wire::LinkProven answer = blank_answer();
  answer.token = *token;
  const auto proven = crypto::node_digest(**secret, challenge, proof, answer);
  if (!proven) return std::unexpected(proven.error());
  answer.digest = *proven;
  return answer;
}

wire::LinkProven refusal_of_proof(const Error& error) {
  wire::LinkProven answer = blank_answer();
  answer.code = static_cast<std::uint32_t>(error.code);
  answer.detail = error.detail;
  return answer;
}

}  // namespace espalier::offload

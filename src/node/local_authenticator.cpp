// SPDX-License-Identifier: Apache-2.0
#include "node/local_authenticator.hpp"

#include <sys/random.h>

#include "base/clock.hpp"
#include "base/places.hpp"
#include "base/system_error.hpp"
#include "engine/principal_accounts.hpp"
#include "node/handshake_packets.hpp"

namespace espalier::node {
namespace {

Result<std::uint64_t> draw() {
  std::uint64_t drawn = 0;
  if (::getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) return base::refused_by_system();
  return drawn;
}

// The number of a user that the node cannot distinguish is meaningless.
std::uint32_t told_user(std::uint32_t user, const base::KnownUsers& known) {
  return user == known.unmapped ? wire::kUserNotMapped : user;
}

}  // namespace

Result<void> LocalAuthenticator::challenge(int socket, const base::PeerUser& peer, Proof& proof) {
  if (secrets_ == nullptr) return fail(Code::unsupported);
  if (proof.challenge) return fail(Code::invalid_argument);
  const std::string source = offload::principal_of_user(peer.user);
  if (!sources_.enter(source, base::monotonic_ns())) {
    counts_.limited.fetch_add(1, std::memory_order_relaxed);
    return base::full(base::Places::proofs);
  }
  const auto made = offload::make_challenge(node_id_, told_user(peer.user, users_), draw);
  if (!made || !send_to_client(socket, *made)) {
    sources_.left(source);
    return made ? fail(Code::connection_lost) : std::unexpected(made.error());
  }
  proof.source = source;
  proof.challenge = *made;
  counts_.pending.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Result<void> LocalAuthenticator::take(int socket, const wire::LinkProof& answer, Proof& proof) {
  if (!proof.challenge || proof.owner || proof.refused_ns != 0) {
    return fail(Code::invalid_argument);
  }
  std::optional<offload::Secrets::Owner> owner;
  const auto grant = [&](const offload::Secrets::Owner& known, const crypto::SecretBytes&) {
    owner = known;
    return Result<wire::LinkToken>(wire::LinkToken{});  // the socket is the session
  };
  const auto read = offload::read_proof(std::as_bytes(std::span(&answer, 1)));
  const auto proven = read ? offload::answer_proof(*secrets_, *proof.challenge, *read, grant)
                           : std::unexpected(read.error());
  if (proven) {
    counts_.accepted.fetch_add(1, std::memory_order_relaxed);
    proof.owner = std::move(owner);
    return send_to_client(socket, *proven) ? Result<void>() : fail(Code::connection_lost);
  }
  proof.refusal = proven.error();
  const bool wrong = proof.refusal.code == Code::not_permitted || !read;
  (wrong ? counts_.wrong : counts_.failed).fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t now = base::monotonic_ns();
  proof.refused_ns =
      now + (wrong ? sources_.wrong(proof.source, now) : offload::PeerSources::kDelayNs);
  return {};
}

void LocalAuthenticator::refuse(int socket, const Proof& proof) {
  send_to_client(socket, offload::refusal_of_proof(proof.refusal));
}

void LocalAuthenticator::ended(const Proof& proof) {
  if (!proof.challenge) return;
  sources_.left(proof.source);
  counts_.pending.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace espalier::node

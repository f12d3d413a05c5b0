// SPDX-License-Identifier: Apache-2.0
// Authenticates clients that come by the UNIX socket and have a secret (wire/link_proof.hpp). Who
// has none comes as its user.
//
// The system tells each side as which user the other runs, and the challenge says what the node was
// told: so a process of another user that stands in for the node, and passes all of it on, is found
// out by the client before it proves anything.
//
// Thread: that of the listener; the counts from any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/peer_user.hpp"
#include "engine/link_authenticator.hpp"
#include "engine/peer_sources.hpp"
#include "engine/proof_check.hpp"
#include "engine/secrets.hpp"

namespace espalier::node {

class LocalAuthenticator {
 public:
  /// How far the proof of one client is.
  struct Proof {
    std::optional<wire::LinkChallenge> challenge{};
    std::optional<offload::Secrets::Owner> owner{};  ///< it has proven to be this one
    Error refusal{};               ///< of an answer that was wrong, to be told at refused_ns
    std::uint64_t refused_ns = 0;  ///< 0: none was
    std::string source{};          ///< for whom it counts
  };

  /// `secrets`: null: nobody can prove anything here. Outlives this.
  LocalAuthenticator(const offload::Secrets* secrets, const base::KnownUsers& users,
                     std::uint64_t node_id)
      : secrets_(secrets), users_(users), node_id_(node_id) {}

  /// Challenges a client that wants to prove a secret. Followed by ended(). Errors: unsupported
  /// (the node has no secrets), invalid_argument (it was challenged before), too_many_participants
  /// (as many of its user prove something as may), connection_lost, system.
  Result<void> challenge(int socket, const base::PeerUser& peer, Proof& proof);
  /// Takes its answer: proven if it has an owner now, else to be refused at refused_ns. Errors: why
  /// there is neither: invalid_argument (there was no challenge, or an answer before),
  /// connection_lost.
  Result<void> take(int socket, const wire::LinkProof& answer, Proof& proof);
  /// Tells a client that it was refused.
  static void refuse(int socket, const Proof& proof);
  /// A client is gone, or has a connection.
  void ended(const Proof& proof);

  [[nodiscard]] const offload::AuthenticationCounts& counts() const { return counts_; }

 private:
  const offload::Secrets* const secrets_;
  const base::KnownUsers users_;
  const std::uint64_t node_id_;
  offload::PeerSources sources_;
  offload::AuthenticationCounts counts_;
};

}  // namespace espalier::node

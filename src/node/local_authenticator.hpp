// SPDX-License-Identifier: Apache-2.0
// Authenticates clients of the UNIX socket that have a secret (wire/link_proof.hpp). A client
// without one is identified by its user.
//
// The system reports to each side the user of the other, and the challenge carries the node's view:
// so the client detects a process of another user that relays for the node, before it proves
// anything.
//
// Thread: the listener's; the counts from any.
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
  /// The progress of one client's proof.
  struct Proof {
    std::optional<wire::LinkChallenge> challenge{};
    std::optional<offload::Secrets::Owner> owner{};  ///< the proven one
    Error refusal{};                                 ///< of a wrong proof, to be sent at refused_ns
    std::uint64_t refused_ns = 0;                    ///< 0: none
    std::string source{};                            ///< by which its attempts are counted
  };

  /// `secrets`: null: no authentication. Outlives this.
  LocalAuthenticator(const offload::Secrets* secrets, const base::KnownUsers& users,
                     std::uint64_t node_id)
      : secrets_(secrets), users_(users), node_id_(node_id) {}

  /// Challenges a client that wants to authenticate. ended() must follow. Errors: unsupported (the
  /// node has no secrets), invalid_argument (it was challenged before), too_many_participants (its
  /// user is at the limit), connection_lost, system.
  Result<void> challenge(int socket, const base::PeerUser& peer, Proof& proof);
  /// Checks its proof: it then has an owner, or is to be refused at refused_ns.
  /// Errors: invalid_argument (there was no challenge, or a proof before), connection_lost.
  Result<void> take(int socket, const wire::LinkProof& answer, Proof& proof);
  /// Sends the refusal to a client.
  static void refuse(int socket, const Proof& proof);
  /// A client has gone, or has a connection.
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

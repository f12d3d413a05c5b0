// SPDX-License-Identifier: Apache-2.0
// The client's side of mutual authentication over a fabric (wire/link_proof.hpp): proves knowledge
// of a secret, checks the node's proof, and obtains a session for which it may open queue pairs.
//
// Thread: that of the endpoint; a ProvenSession's owner locks it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "channel/rings/known_secret.hpp"
#include "fabric/endpoint.hpp"
#include "wire/link_proof.hpp"

namespace espalier::client {

/// A mutually authenticated session, and its key.
struct ProvenSession {
  wire::LinkToken token{};
  std::uint64_t node_id = 0;
  crypto::Secret<crypto::SecretBytes> key;
  std::uint32_t hellos = 0;  ///< signed so far

  /// Signs a hello, which is valid once. Errors: unsupported (no libcrypto).
  Result<wire::LinkProvenHello> sign(wire::LinkHello hello);
};

struct LinkProverOptions {
  std::uint64_t timeout_ns = 10'000'000'000;
  std::uint64_t pair_timeout_ns = fabric::QueuePairOptions{}.timeout_ns;
  std::uint32_t mtu_bytes = 4096;
  std::function<std::uint64_t()> now_ns;
};

/// Authenticates both sides. `hello` has the sizes of the rings that will be requested. Cost: three
/// round trips; more tries while the node has too many peers.
/// Errors: those of Endpoint::connect(); system (ECONNREFUSED, ETIMEDOUT; ECONNRESET: the node
/// closed the exchange repeatedly; no memory may be locked), unsupported (no libcrypto), corrupt
/// (the peer is not a node), not_permitted (detail 5: the node does not know this name and secret;
/// 6: the node has not proven that it does), and the node's other reasons for refusal.
Result<ProvenSession> prove_link(fabric::Endpoint& endpoint, const std::string& target,
                                 const KnownSecret& secret, const wire::LinkHello& hello,
                                 const LinkProverOptions& options);

}  // namespace espalier::client

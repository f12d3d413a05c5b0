// SPDX-License-Identifier: Apache-2.0
// The client's side of a proof (wire/link_proof.hpp): it shows that it knows a secret, sees that
// the node does too, and has a session whose pairs it can ask for.
//
// Thread: that of the endpoint; a ProvenSession's own lock is its owner's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "channel/rings/known_secret.hpp"
#include "fabric/endpoint.hpp"
#include "wire/link_proof.hpp"

namespace espalier::client {

/// A session that both sides have proven, and its key.
struct ProvenSession {
  wire::LinkToken token{};
  std::uint64_t node_id = 0;
  crypto::Secret<crypto::SecretBytes> key;
  std::uint32_t hellos = 0;  ///< that were signed

  /// A hello as the node wants it, which is good once. Errors: unsupported (no libcrypto).
  Result<wire::LinkProvenHello> sign(wire::LinkHello hello);
};

struct LinkProverOptions {
  std::uint64_t timeout_ns = 10'000'000'000;
  std::uint64_t pair_timeout_ns = fabric::QueuePairOptions{}.timeout_ns;
  std::uint32_t mtu_bytes = 4096;
  std::function<std::uint64_t()> now_ns;
};

/// Cost: three round trips; while the node has as many peers as it takes, another try now and then.
/// `hello` has the sizes of the rings that will be asked for.
/// Errors: those of Endpoint::connect(); system (ECONNREFUSED, ETIMEDOUT; ECONNRESET: the node
/// ended it, again and again; no memory may be locked),
/// unsupported (no libcrypto), corrupt (what answers is no node), not_permitted (detail 5: the node
/// does not know this name and secret; 6: it has not proven that it does), and why else the node
/// refused.
Result<ProvenSession> prove_link(fabric::Endpoint& endpoint, const std::string& target,
                                 const KnownSecret& secret, const wire::LinkHello& hello,
                                 const LinkProverOptions& options);

}  // namespace espalier::client

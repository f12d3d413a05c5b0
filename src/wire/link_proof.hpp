// SPDX-License-Identifier: Apache-2.0
// Mutual authentication of client and node where a node accepts only clients that know a secret
// (docs/formats/link_proof.md draws it).
//
//     client                                node
//       connect, LinkHello of way `prove` ---->      a pair that reaches no memory
//       <---- LinkChallenge                          a number that was never used before
//       LinkProof ---->                              a name, and that its secret is known
//       <---- LinkProven                             a session, and that the node knows it too
//       connect, LinkProvenHello ---->               each pair of that session
//
// Messages go by SEND. Each signature covers the direction, which prevents reflection, and both
// sides' nonces, which prevents replay.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "wire/ring_link.hpp"

namespace espalier::wire {

inline constexpr std::uint64_t kProofMagic = 0x464F4F52504C5345;  // "ESLPROOF", low byte first
inline constexpr std::size_t kProofNameBytes = 32;

using ProofNonce = std::array<std::byte, 32>;
using ProofDigest = std::array<std::byte, 32>;

enum class ProofStep : std::uint32_t {
  invalid = 0,
  challenge = 1,
  proof = 2,
  proven = 3,
  ask = 4,
};

/// By a UNIX socket a client asks for a challenge by this packet, before its Hello
/// (wire/handshake.hpp); the messages are packets there, and the proof is one of the connection.
struct ProofAsk {
  std::uint64_t magic;
  std::uint32_t step;  // ProofStep
  std::uint32_t reserved;
};
static_assert(sizeof(ProofAsk) == 16 && std::has_unique_object_representations_v<ProofAsk>);
/// Stands there in place of a user that the node's user namespace does not map.
inline constexpr std::uint32_t kUserNotMapped = ~std::uint32_t{0};

struct LinkChallenge {
  std::uint64_t magic;
  std::uint32_t step;       // ProofStep
  std::uint32_t node_pair;  // by a UNIX socket: as which user the client comes, as the node sees it
  std::uint64_t node_id;
  ProofNonce nonce;
};
static_assert(sizeof(LinkChallenge) == 56 &&
              std::has_unique_object_representations_v<LinkChallenge>);

struct LinkProof {
  std::uint64_t magic;
  std::uint32_t step;
  std::uint32_t client_pair;  // by a UNIX socket 0
  ProofNonce nonce;
  std::array<char, kProofNameBytes> name;  // zeros behind it
  ProofDigest digest;                      // of the challenge, and of all before it
};
static_assert(sizeof(LinkProof) == 112 && std::has_unique_object_representations_v<LinkProof>);
static_assert(offsetof(LinkProof, digest) == 80);

struct LinkProven {
  std::uint64_t magic;
  std::uint32_t step;
  std::uint32_t code;  // 0, or a Code: then the rest is 0 but for `detail`
  std::uint32_t detail;
  std::uint32_t reserved;
  LinkToken token;     // of the session that is there now
  ProofDigest digest;  // of challenge and proof, and of all before it
};
static_assert(sizeof(LinkProven) == 72 && std::has_unique_object_representations_v<LinkProven>);
static_assert(offsetof(LinkProven, digest) == 40);

/// How a client of a proven session asks for a pair. `hello.reserved` counts them from 1 on, which
/// detects replays: for the rings, and for READs, a node accepts only numbers above all that came
/// for the same; for WRITEs, of which a session has several pairs, each once, and none far below
/// the highest.
struct LinkProvenHello {
  LinkHello hello;
  std::uint64_t mark;  // the first 8 bytes of the digest of `hello`, by the session's key
};
static_assert(sizeof(LinkProvenHello) == 56 &&
              std::has_unique_object_representations_v<LinkProvenHello>);

}  // namespace espalier::wire

// SPDX-License-Identifier: Apache-2.0
// Authenticates clients over a fabric, before they have anything of the node's
// (wire/link_proof.hpp).
//
// A peer that is not authenticated yet is pending: it has a queue pair of no domain, so that it
// reaches nothing, a challenge, room for one message, and five seconds. What comes of it is a
// session, whose pairs are others.
//
// What never happens
// - A peer that is not authenticated holds more than that, or for longer.
// - More than kPendingMax peers are pending; further ones are refused.
// - A challenge is good twice: its nonce is drawn, and its pair takes one proof.
//
// Thread: that of the endpoint.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "fabric/completion_queue.hpp"
#include "fabric/endpoint.hpp"
#include "fabric/receive_queue.hpp"
#include "offload/secrets.hpp"
#include "wire/link_proof.hpp"

namespace espalier::offload {

struct LinkAuthenticatorOptions {
  std::uint64_t node_id = 0;
  std::uint64_t pair_timeout_ns = fabric::QueuePairOptions{}.timeout_ns;
  std::function<std::uint64_t()> now_ns;
  /// Random numbers that nobody can guess.
  std::function<Result<std::uint64_t>()> draw;
  /// Makes a session for an authenticated client, whose pairs are asked for by this key.
  std::function<Result<wire::LinkToken>(const wire::LinkHello&, const Access&,
                                        const crypto::SecretBytes& key)>
      admit;
};

/// Numbers about it. Thread: any.
struct AuthenticationCounts {
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::uint64_t> wrong{0};      ///< proofs that were none
  std::atomic<std::uint64_t> timed_out{0};  ///< peers that sent no proof in time
};

class LinkAuthenticator {
 public:
  static constexpr std::size_t kPendingMax = 256;
  static constexpr std::uint64_t kTimeoutNs = 5'000'000'000;
  /// Wrong proofs are answered so much later, which slows guessing.
  static constexpr std::uint64_t kRejectionDelayNs = 250'000'000;

  /// `endpoint` and `secrets` outlive it.
  LinkAuthenticator(fabric::Endpoint& endpoint, const Secrets& secrets,
                    LinkAuthenticatorOptions options);
  ~LinkAuthenticator();
  LinkAuthenticator(const LinkAuthenticator&) = delete;
  LinkAuthenticator& operator=(const LinkAuthenticator&) = delete;

  /// Makes the peer pending, and challenges it. Errors: too_many_participants (as many are), those
  /// of Endpoint::accept().
  Result<void> challenge(const fabric::ConnectRequest& request, const wire::LinkHello& hello);
  /// Takes proofs, answers them, and ends peers that are late. Returns whether anything happened.
  bool turn();
  [[nodiscard]] std::size_t size() const { return pending_.size(); }
  [[nodiscard]] const AuthenticationCounts& counts() const { return counts_; }

 private:
  struct PendingPeer {
    std::unique_ptr<fabric::QueuePair> pair;
    wire::LinkHello hello{};
    wire::LinkChallenge challenge{};
    wire::LinkProven answer{};
    std::uint64_t until_ns = 0;   // then it is closed
    std::uint64_t answer_ns = 0;  // when a refusal leaves; 0: there is none that waits
    std::uint64_t from = 0;       // what was told before is of the pair that had the number then
    bool took = false;            // its proof
  };

  void take(const fabric::Completion& completion);
  void take_proof(PendingPeer& peer, std::span<const std::byte> message);
  [[nodiscard]] Result<void> check(PendingPeer& peer, const wire::LinkProof& proof);
  void reject(PendingPeer& peer, const Error& error);
  void send(PendingPeer& peer);

  fabric::Endpoint& endpoint_;
  const Secrets& secrets_;
  LinkAuthenticatorOptions options_;
  fabric::CompletionQueue completions_;
  fabric::ReceiveQueue receives_;
  std::vector<wire::LinkProof> buffers_;
  std::unordered_map<std::uint32_t, std::unique_ptr<PendingPeer>>
      pending_;              // by their pairs' numbers
  std::uint64_t taken_ = 0;  // completions, ever
  AuthenticationCounts counts_;
};

}  // namespace espalier::offload

// SPDX-License-Identifier: Apache-2.0
// Authenticates clients over a fabric, before they get any resource of the node
// (wire/link_proof.hpp).
//
// An unauthenticated peer is pending: it has a queue pair of no domain, which reaches no memory, a
// challenge, room for one message, and five seconds. A valid proof creates a session, with queue
// pairs of its own.
//
// Invariants
// - No unauthenticated peer holds more than that, or for longer.
// - At most kPendingMax peers are pending, and per source as many as peer_sources.hpp permits.
//   Further ones are refused, or evict a peer of a source that holds more.
// - No source with many slots keeps out the peers of others.
// - Each wrong proof from a source doubles the delay of its rejection, up to a limit.
// - No challenge is accepted twice: its nonce is drawn, and its pair accepts one proof.
//
// Thread: the endpoint's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/peer_sources.hpp"
#include "engine/proof_check.hpp"
#include "engine/secrets.hpp"
#include "fabric/completion_queue.hpp"
#include "fabric/endpoint.hpp"
#include "fabric/receive_queue.hpp"
#include "wire/link_proof.hpp"

namespace espalier::offload {

struct LinkAuthenticatorOptions {
  std::uint64_t node_id = 0;
  std::uint64_t pair_timeout_ns = fabric::QueuePairOptions{}.timeout_ns;
  std::function<std::uint64_t()> now_ns;
  Draw draw;
  /// Creates a session for an authenticated client; hellos for its pairs are signed with this key.
  /// `peer`: the transport's name of the client.
  std::function<Result<wire::LinkToken>(const wire::LinkHello&, const Secrets::Owner&,
                                        const crypto::SecretBytes& key, const std::string& peer)>
      admit;
  /// Called for each rejected proof: the claimed name (empty: no valid one), the peer, and the
  /// reason.
  std::function<void(std::string_view name, const std::string& peer, const Error& why)> rejected;
};

/// Counters. Thread: any.
struct AuthenticationCounts {
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::uint64_t> wrong{0};      ///< wrong proofs, and wrong MACs of hellos
  std::atomic<std::uint64_t> timed_out{0};  ///< peers that sent no proof in time
  std::atomic<std::uint64_t> failed{0};     ///< valid proofs for which no session was made
  std::atomic<std::uint64_t> limited{0};    ///< peers refused, or evicted, at the limit on
                                            ///< pending peers
  std::atomic<std::uint32_t> pending{0};    ///< peers, now
};

class LinkAuthenticator {
 public:
  static constexpr std::size_t kPendingMax = 256;
  static constexpr std::uint64_t kTimeoutNs = 5'000'000'000;

  /// `endpoint` and `secrets` outlive it.
  LinkAuthenticator(fabric::Endpoint& endpoint, const Secrets& secrets,
                    LinkAuthenticatorOptions options);
  ~LinkAuthenticator();
  LinkAuthenticator(const LinkAuthenticator&) = delete;
  LinkAuthenticator& operator=(const LinkAuthenticator&) = delete;

  /// Makes the peer pending, and sends it a challenge. Errors: too_many_participants (its source is
  /// at its limit; or all slots are taken, and no other source holds as many), those of
  /// Endpoint::accept().
  Result<void> challenge(const fabric::ConnectRequest& request, const wire::LinkHello& hello);
  /// Counts a wrong MAC of a hello, which came without a challenge. Returns the delay of its
  /// refusal.
  [[nodiscard]] std::uint64_t count_wrong(std::string_view peer);
  /// Polls proofs, answers them, and closes late peers. Returns whether anything happened.
  bool turn();
  [[nodiscard]] std::size_t size() const { return pending_.size(); }
  [[nodiscard]] const AuthenticationCounts& counts() const { return counts_; }

 private:
  struct PendingPeer {
    std::unique_ptr<fabric::QueuePair> pair;
    std::string name;       // the transport's name of it
    std::string source;     // its source (peer_sources.hpp)
    bool of_source = true;  // counted there
    wire::LinkHello hello{};
    wire::LinkChallenge challenge{};
    wire::LinkProven answer{};
    std::uint64_t until_ns = 0;   // then the pair is closed
    std::uint64_t answer_ns = 0;  // when a delayed refusal is sent; 0: none
    std::uint64_t from = 0;       // earlier completions belong to the number's previous pair
    bool took = false;            // its proof was received
  };

  Result<void> begin(const fabric::ConnectRequest& request, PendingPeer& peer);
  void take(const fabric::Completion& completion);
  void take_proof(PendingPeer& peer, std::span<const std::byte> message);
  void reject(PendingPeer& peer, std::string_view name, const Error& error);
  [[nodiscard]] bool enter(const std::string& source);
  [[nodiscard]] bool push_one_out(const std::string& source);
  void leave_source(PendingPeer& peer);
  void send(PendingPeer& peer);

  fabric::Endpoint& endpoint_;
  const Secrets& secrets_;
  LinkAuthenticatorOptions options_;
  fabric::CompletionQueue completions_;
  fabric::ReceiveQueue receives_;
  std::vector<wire::LinkProof> buffers_;
  std::unordered_map<std::uint32_t, std::unique_ptr<PendingPeer>>
      pending_;  // by their pairs' numbers
  PeerSources sources_;
  std::uint64_t taken_ = 0;  // completions polled, in total
  AuthenticationCounts counts_;
};

}  // namespace espalier::offload

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
// - More than kPendingMax peers are pending, or more of one place than peer_sources.hpp says;
//   further ones are refused, or push out those of places that hold more.
// - Places that hold many slots keep the peers of others out.
// - A place that sent wrong proofs learns of the next one as soon as of the first.
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
  /// Makes a session for an authenticated client, whose pairs are asked for by this key. `peer`:
  /// what the transport calls it.
  std::function<Result<wire::LinkToken>(const wire::LinkHello&, const Secrets::Owner&,
                                        const crypto::SecretBytes& key, const std::string& peer)>
      admit;
  /// Hears of each proof that was not accepted: the name that was said (empty: none that can be),
  /// the peer, and why.
  std::function<void(std::string_view name, const std::string& peer, const Error& why)> rejected;
};

/// Numbers about it. Thread: any.
struct AuthenticationCounts {
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::uint64_t> wrong{0};      ///< proofs that were none, marks of hellos among them
  std::atomic<std::uint64_t> timed_out{0};  ///< peers that sent no proof in time
  std::atomic<std::uint64_t> failed{0};     ///< good proofs, for which no session could be made
  std::atomic<std::uint64_t> limited{0};    ///< peers refused, or pushed out, for as many as may be
                                            ///< were pending
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

  /// Makes the peer pending, and challenges it. Errors: too_many_participants (as many are of its
  /// place; or of all, and no place holds more than its own), those of Endpoint::accept().
  Result<void> challenge(const fabric::ConnectRequest& request, const wire::LinkHello& hello);
  /// Counts a wrong proof that came without a challenge: the mark of a hello. Returns how long its
  /// refusal is to wait.
  [[nodiscard]] std::uint64_t count_wrong(std::string_view peer);
  /// Takes proofs, answers them, and ends peers that are late. Returns whether anything happened.
  bool turn();
  [[nodiscard]] std::size_t size() const { return pending_.size(); }
  [[nodiscard]] const AuthenticationCounts& counts() const { return counts_; }

 private:
  struct PendingPeer {
    std::unique_ptr<fabric::QueuePair> pair;
    std::string name;       // what the transport calls it
    std::string source;     // its place
    bool of_source = true;  // counted there
    wire::LinkHello hello{};
    wire::LinkChallenge challenge{};
    wire::LinkProven answer{};
    std::uint64_t until_ns = 0;   // then it is closed
    std::uint64_t answer_ns = 0;  // when a refusal leaves; 0: there is none that waits
    std::uint64_t from = 0;       // what was told before is of the pair that had the number then
    bool took = false;            // its proof
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
  std::uint64_t taken_ = 0;  // completions, ever
  AuthenticationCounts counts_;
};

}  // namespace espalier::offload

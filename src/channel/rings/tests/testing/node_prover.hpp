// SPDX-License-Identifier: Apache-2.0
// For tests: a node's side of a proof (wire/link_proof.hpp), with the secret. Most of its messages
// are correct, so that clients proceed to ask for rings; Choices select the wrong ones.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "channel/rings/known_secret.hpp"
#include "channel/rings/tests/testing/choices.hpp"
#include "crypto/link_proof.hpp"
#include "fabric/endpoint.hpp"
#include "wire/link_proof.hpp"

namespace espalier::client {

class NodeProver {
 public:
  explicit NodeProver(std::shared_ptr<const KnownSecret> secret) : secret_(std::move(secret)) {}
  ~NodeProver() { end(); }
  NodeProver(const NodeProver&) = delete;
  NodeProver& operator=(const NodeProver&) = delete;

  void begin(fabric::Endpoint& endpoint) { completions_.emplace(endpoint, 64); }
  void end() {
    if (pair_) pair_->close();
    pair_.reset();
    completions_.reset();
  }

  /// Accepts a hello that asks for a proof, instead of the previous one, and sends a challenge.
  void challenge(fabric::Endpoint& endpoint, const fabric::ConnectRequest& request,
                 wire::LinkWelcome welcome, Choices& choices) {
    if (pair_) pair_->close();
    static_cast<void>(heard_proof());  // discards the previous one's proof
    fabric::QueuePairOptions options;
    options.sends = &*completions_;
    options.timeout_ns = 100'000;
    std::string bytes(base::bytes_of(welcome));
    spoil(bytes, choices);
    auto pair = endpoint.accept(request, options, std::as_bytes(std::span(bytes)));
    if (!pair) return;
    pair_ = std::move(*pair);
    const fabric::Receive receive{0, std::as_writable_bytes(std::span(&proof_, 1))};
    pair_->post_receives({&receive, 1});
    challenge_ = {};
    challenge_.magic = wire::kProofMagic;
    challenge_.step = static_cast<std::uint32_t>(wire::ProofStep::challenge);
    challenge_.node_pair = pair_->number();
    challenge_.node_id = welcome.node_id;
    challenge_.nonce.front() = static_cast<std::byte>(choices.below(256));
    say(std::string(base::bytes_of(challenge_)), choices);
  }

  /// Whether a proof has arrived that is not answered yet.
  [[nodiscard]] bool heard_proof() {
    bool came = false;
    fabric::Completion completion;
    while (completions_->poll({&completion, 1}) != 0) {
      came |= completion.opcode == fabric::Opcode::receive && pair_ &&
              completion.pair == pair_->number() && completion.status == fabric::Status::success;
    }
    return came;
  }

  /// Answers it: with a session, or an error.
  void prove(wire::LinkToken token, Choices& choices) {
    wire::LinkProven proven{};
    proven.magic = wire::kProofMagic;
    proven.step = static_cast<std::uint32_t>(wire::ProofStep::proven);
    proven.token = token;
    if (choices.one_in(16)) proven.code = static_cast<std::uint32_t>(choices.below(40));
    const auto digest = crypto::node_digest(secret_->bytes(), challenge_, proof_, proven);
    if (digest) proven.digest = *digest;
    say(std::string(base::bytes_of(proven)), choices);
  }

 private:
  static void spoil(std::string& bytes, Choices& choices) {
    if (!choices.one_in(16)) return;
    const std::size_t at = choices.below(bytes.size());
    bytes[at] = static_cast<char>(choices.below(256));
  }
  // It sends at most two messages through one pair, so both stay in place.
  void say(std::string bytes, Choices& choices) {
    spoil(bytes, choices);
    std::string& kept = said_[next_++ % std::size(said_)];
    kept = std::move(bytes);
    pair_->post(fabric::WorkRequest::send(1, std::as_bytes(std::span(kept))));
  }

  const std::shared_ptr<const KnownSecret> secret_;
  std::optional<fabric::CompletionQueue> completions_;
  std::unique_ptr<fabric::QueuePair> pair_;
  wire::LinkChallenge challenge_{};
  wire::LinkProof proof_{};
  std::string said_[2];
  std::size_t next_ = 0;
};

}  // namespace espalier::client

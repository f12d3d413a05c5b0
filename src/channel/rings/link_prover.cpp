// SPDX-License-Identifier: Apache-2.0
#include "channel/rings/link_prover.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "channel/rings/link_welcome.hpp"
#include "channel/rings/node_proof.hpp"
#include "crypto/link_proof.hpp"
#include "fabric/completion_queue.hpp"
#include "fabric/queue_pair.hpp"

namespace espalier::client {
namespace {

using fabric::QueuePair;

constexpr std::uint64_t kProverNapNs = 10'000'000;
constexpr std::uint64_t kProveAgainNs = 50'000'000;
constexpr std::uint32_t kProofReceives = 2;  // a challenge, and the result of the proof
constexpr std::uint32_t kSends = 2;
constexpr std::size_t kMessageBytesMax = 256;

/// A pair and its queues, for the duration of the exchange.
class Exchange {
 public:
  Exchange(fabric::Endpoint& endpoint, const LinkProverOptions& options, std::uint64_t until_ns)
      : endpoint_(endpoint),
        options_(options),
        until_ns_(until_ns),
        completions_(endpoint, kProofReceives + kSends) {}
  ~Exchange() {
    if (!pair_) return;
    pair_->close();
    endpoint_.progress();  // sends the close
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  Result<void> connect(const std::string& target, const wire::LinkHello& hello) {
    fabric::QueuePairOptions options;
    options.sends = &completions_;
    options.send_depth = kSends;
    options.receive_depth = kProofReceives;
    options.mtu_bytes = options_.mtu_bytes;
    options.timeout_ns = options_.pair_timeout_ns;
    auto pair = endpoint_.connect(target, options, std::as_bytes(std::span(&hello, 1)));
    if (!pair) return std::unexpected(pair.error());
    pair_ = std::move(*pair);
    for (std::uint64_t i = 0; i < kProofReceives; ++i) {
      const fabric::Receive receive{i, buffers_[i]};
      pair_->post_receives({&receive, 1});
    }
    const bool at_once = pair_->state() == QueuePair::State::error;
    while (pair_->state() == QueuePair::State::connecting) {
      if (options_.now_ns() >= until_ns_) return fail(Code::system, ETIMEDOUT);
      endpoint_.progress();
      endpoint_.wait(kProverNapNs);
    }
    if (pair_->state() == QueuePair::State::error) {
      const Error why = why_not_connected(*pair_, at_once);
      // A node that asks for no proof has none to give.
      if (why.code == Code::unsupported) return std::unexpected(node_not_proven());
      return std::unexpected(why);
    }
    const auto welcome = read_welcome(pair_->peer_data());
    if (!welcome && welcome.error().code == Code::unsupported) {
      return std::unexpected(node_not_proven());
    }
    if (!welcome) return std::unexpected(welcome.error());
    return {};
  }

  /// The node's next message, which must be a T. Errors: system, corrupt.
  template <class T>
  Result<T> receive(wire::ProofStep step) {
    while (!arrived_) {
      fabric::Completion completion;
      if (completions_.poll({&completion, 1}) != 0) {
        take(completion);
        continue;
      }
      if (pair_->state() == QueuePair::State::error) {
        const bool silent = pair_->ended_by() == fabric::Status::retry_exceeded;
        return fail(Code::system, silent ? ETIMEDOUT : ECONNRESET);
      }
      if (options_.now_ns() >= until_ns_) return fail(Code::system, ETIMEDOUT);
      endpoint_.wait(kProverNapNs);
    }
    const std::span<const std::byte> bytes = *std::exchange(arrived_, std::nullopt);
    T message{};
    if (bytes.size() != sizeof message) return fail(Code::corrupt, 1);
    std::memcpy(&message, bytes.data(), sizeof message);
    if (message.magic != wire::kProofMagic || message.step != static_cast<std::uint32_t>(step)) {
      return fail(Code::corrupt, 1);
    }
    return message;
  }

  Result<void> send(const wire::LinkProof& proof) {
    sent_ = proof;
    const auto posted =
        pair_->post(fabric::WorkRequest::send(0, std::as_bytes(std::span(&sent_, 1))));
    if (posted.taken != 1) return fail(Code::system, ECONNRESET);
    endpoint_.progress();
    return {};
  }
  [[nodiscard]] std::uint32_t pair_number() const { return pair_->number(); }

 private:
  void take(const fabric::Completion& completion) {
    if (completion.opcode != fabric::Opcode::receive) return;
    if (completion.status != fabric::Status::success) return;
    const std::size_t bytes = std::min<std::size_t>(completion.bytes, kMessageBytesMax);
    arrived_ = std::span<const std::byte>(buffers_[completion.work_id]).first(bytes);
  }

  fabric::Endpoint& endpoint_;
  const LinkProverOptions& options_;
  const std::uint64_t until_ns_;
  fabric::CompletionQueue completions_;
  std::array<std::byte, kMessageBytesMax> buffers_[kProofReceives];
  wire::LinkProof sent_{};
  std::optional<std::span<const std::byte>> arrived_;
  std::unique_ptr<QueuePair> pair_;
};

void rest(fabric::Endpoint& endpoint, const LinkProverOptions& options) {
  const std::uint64_t until = options.now_ns() + kProveAgainNs;
  while (options.now_ns() < until) {
    endpoint.progress();
    endpoint.wait(kProverNapNs);
  }
}

}  // namespace

Result<wire::LinkProvenHello> ProvenSession::sign(wire::LinkHello hello) {
  hello.token = token;
  hello.reserved = ++hellos;
  const auto mark = crypto::hello_mark(*key, hello);
  if (!mark) return std::unexpected(mark.error());
  return wire::LinkProvenHello{hello, *mark};
}

namespace {

/// One attempt at the whole exchange.
Result<ProvenSession> prove_once(Exchange& exchange, const std::string& target,
                                 const KnownSecret& secret, const wire::LinkHello& hello) {
  auto key = crypto::Secret<crypto::SecretBytes>::make();
  if (!key) return std::unexpected(key.error());
  if (auto connected = exchange.connect(target, hello); !connected) {
    return std::unexpected(connected.error());
  }
  const auto challenge = exchange.receive<wire::LinkChallenge>(wire::ProofStep::challenge);
  if (!challenge) return std::unexpected(challenge.error());
  const auto proof = make_proof(secret, *challenge, exchange.pair_number());
  if (!proof) return std::unexpected(proof.error());
  if (auto sent = exchange.send(*proof); !sent) return std::unexpected(sent.error());
  const auto proven = exchange.receive<wire::LinkProven>(wire::ProofStep::proven);
  if (!proven) return std::unexpected(proven.error());
  if (const auto good = check_node_proof(secret, *challenge, *proof, *proven); !good) {
    return std::unexpected(good.error());
  }
  if (proven->token == wire::LinkToken{}) return std::unexpected(node_not_proven());
  if (auto made = crypto::session_key(secret.bytes(), *challenge, *proof, **key); !made) {
    return std::unexpected(made.error());
  }
  return ProvenSession{proven->token, challenge->node_id, std::move(*key), 0};
}

// A node with too many peers may have room soon: it refuses, or evicts the oldest peer.
bool may_prove_again(const Error& error) {
  return may_pass(error) || (error.code == Code::system && error.detail == ECONNRESET);
}

}  // namespace

Result<ProvenSession> prove_link(fabric::Endpoint& endpoint, const std::string& target,
                                 const KnownSecret& secret, const wire::LinkHello& hello,
                                 const LinkProverOptions& options) {
  wire::LinkHello asks = hello;
  asks.way = static_cast<std::uint8_t>(wire::LinkWay::prove);
  const std::uint64_t until = options.now_ns() + options.timeout_ns;
  for (;;) {
    auto proven = [&] {
      Exchange exchange(endpoint, options, until);
      return prove_once(exchange, target, secret, asks);
    }();
    if (proven || !may_prove_again(proven.error())) return proven;
    if (options.now_ns() + kProveAgainNs >= until) return proven;
    rest(endpoint, options);
  }
}

}  // namespace espalier::client

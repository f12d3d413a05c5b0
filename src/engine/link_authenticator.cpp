// SPDX-License-Identifier: Apache-2.0
#include "engine/link_authenticator.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "base/places.hpp"
#include "engine/proof_check.hpp"

namespace espalier::offload {
namespace {

constexpr std::uint32_t kProofReceives = 2 * LinkAuthenticator::kPendingMax;
constexpr std::uint32_t kSendsOfPeer = 2;

}  // namespace

LinkAuthenticator::LinkAuthenticator(fabric::Endpoint& endpoint, const Secrets& secrets,
                                     LinkAuthenticatorOptions options)
    : endpoint_(endpoint),
      secrets_(secrets),
      options_(std::move(options)),
      completions_(endpoint, kProofReceives + kSendsOfPeer * kPendingMax),
      receives_(completions_, kProofReceives),
      buffers_(kProofReceives) {
  for (std::uint64_t i = 0; i < kProofReceives; ++i) {
    const fabric::Receive receive{i, std::as_writable_bytes(std::span(&buffers_[i], 1))};
    receives_.post({&receive, 1});
  }
}

LinkAuthenticator::~LinkAuthenticator() {
  for (const auto& [number, peer] : pending_) peer->pair->close();
  pending_.clear();
}

Result<void> LinkAuthenticator::challenge(const fabric::ConnectRequest& request,
                                          const wire::LinkHello& hello) {
  std::string source = source_of(request.peer);
  if (!enter(source)) {
    counts_.limited.fetch_add(1, std::memory_order_relaxed);
    return base::full(base::Places::proofs, kPendingMax);
  }
  auto peer = std::make_unique<PendingPeer>();
  peer->name = request.peer;
  peer->source = std::move(source);
  peer->hello = hello;
  if (auto begun = begin(request, *peer); !begun) {
    sources_.left(peer->source);
    return begun;
  }
  pending_[peer->pair->number()] = std::move(peer);
  counts_.pending.store(static_cast<std::uint32_t>(pending_.size()), std::memory_order_relaxed);
  return {};
}

bool LinkAuthenticator::enter(const std::string& source) {
  if (!sources_.enter(source, options_.now_ns())) return false;
  if (pending_.size() < kPendingMax || push_one_out(source)) return true;
  sources_.left(source);
  return false;
}

// Evicts the oldest peer of the other source with most peers, unless that source would then have
// fewer than the new peer's. So each source has a fair share of the slots, and an evicted peer had
// as long to authenticate as all the others took to arrive.
bool LinkAuthenticator::push_one_out(const std::string& source) {
  const std::uint32_t own = sources_.pending(source);
  std::uint32_t most = 0;
  auto found = pending_.end();
  for (auto at = pending_.begin(); at != pending_.end(); ++at) {
    const PendingPeer& peer = *at->second;
    if (!peer.of_source || peer.source == source) continue;  // authenticated, or of the same source
    const std::uint32_t held = sources_.pending(peer.source);
    if (held < own || held < most) continue;
    if (held == most && peer.until_ns >= found->second->until_ns) continue;
    most = held;
    found = at;
  }
  if (found == pending_.end()) return false;
  counts_.limited.fetch_add(1, std::memory_order_relaxed);
  found->second->pair->close();
  leave_source(*found->second);
  pending_.erase(found);
  return true;
}

Result<void> LinkAuthenticator::begin(const fabric::ConnectRequest& request, PendingPeer& peer) {
  auto challenge = make_challenge(options_.node_id, 0, options_.draw);
  if (!challenge) return std::unexpected(challenge.error());
  wire::LinkWelcome welcome{};
  welcome.magic = wire::kLinkMagic;
  welcome.protocol = wire::kLinkProtocol;
  welcome.way = peer.hello.way;
  welcome.node_id = options_.node_id;
  fabric::QueuePairOptions options;
  options.sends = &completions_;
  options.shared_receives = &receives_;
  options.send_depth = kSendsOfPeer;
  options.domain = fabric::kNoDomain;
  options.timeout_ns = options_.pair_timeout_ns;
  auto pair = endpoint_.accept(request, options, std::as_bytes(std::span(&welcome, 1)));
  if (!pair) return std::unexpected(pair.error());
  peer.pair = std::move(*pair);
  peer.from = taken_ + completions_.waiting();
  peer.until_ns = options_.now_ns() + kTimeoutNs;
  peer.challenge = *challenge;
  peer.challenge.node_pair = peer.pair->number();
  const auto sent =
      peer.pair->post(fabric::WorkRequest::send(0, std::as_bytes(std::span(&peer.challenge, 1))));
  if (sent.taken != 1) return fail(Code::out_of_memory);
  return {};
}

std::uint64_t LinkAuthenticator::count_wrong(std::string_view peer) {
  counts_.wrong.fetch_add(1, std::memory_order_relaxed);
  return sources_.wrong(source_of(peer), options_.now_ns());
}

bool LinkAuthenticator::turn() {
  if (pending_.empty()) return false;
  bool moved = false;
  // As many as the peers accepted in one turn can cause, and those that they evict.
  fabric::Completion batch[64];
  const std::size_t count = completions_.poll(batch);
  for (std::size_t i = 0; i < count; ++i) take(batch[i]);
  moved = count != 0;
  const std::uint64_t now = options_.now_ns();
  std::erase_if(pending_, [&](const auto& entry) {
    PendingPeer& peer = *entry.second;
    if (peer.answer_ns != 0 && peer.answer_ns <= now) send(peer);
    const bool late = peer.until_ns <= now;
    const bool ended = peer.pair->state() == fabric::QueuePair::State::error;
    if (!late && !ended) return false;
    if (late && !peer.took) counts_.timed_out.fetch_add(1, std::memory_order_relaxed);
    if (!ended) peer.pair->close();
    leave_source(peer);
    moved = true;
    return true;
  });
  counts_.pending.store(static_cast<std::uint32_t>(pending_.size()), std::memory_order_relaxed);
  return moved;
}

void LinkAuthenticator::take(const fabric::Completion& completion) {
  const std::uint64_t number = taken_++;
  const bool receive = completion.opcode == fabric::Opcode::receive ||
                       completion.opcode == fabric::Opcode::receive_write;
  if (!receive) return;
  wire::LinkProof& buffer = buffers_[completion.work_id];
  const auto at = pending_.find(completion.pair);
  if (at != pending_.end() && number >= at->second->from && !at->second->took &&
      completion.status == fabric::Status::success &&
      completion.opcode == fabric::Opcode::receive) {
    const std::size_t bytes = std::min<std::size_t>(completion.bytes, sizeof buffer);
    take_proof(*at->second, std::as_bytes(std::span(&buffer, 1)).first(bytes));
  }
  const fabric::Receive again{completion.work_id, std::as_writable_bytes(std::span(&buffer, 1))};
  receives_.post({&again, 1});
}

void LinkAuthenticator::take_proof(PendingPeer& peer, std::span<const std::byte> message) {
  peer.took = true;
  const auto proof = read_proof(message);  // the buffer is private
  if (!proof) return reject(peer, {}, proof.error());
  const auto admit = [&](const Secrets::Owner& owner, const crypto::SecretBytes& key) {
    return options_.admit(peer.hello, owner, key, peer.name);
  };
  const auto answer = answer_proof(secrets_, peer.challenge, *proof, admit);
  if (!answer) return reject(peer, name_of(*proof), answer.error());
  peer.answer = *answer;
  counts_.accepted.fetch_add(1, std::memory_order_relaxed);
  leave_source(peer);
  send(peer);
}

void LinkAuthenticator::reject(PendingPeer& peer, std::string_view name, const Error& error) {
  const bool wrong = error.code == Code::not_permitted || error.code == Code::invalid_argument;
  (wrong ? counts_.wrong : counts_.failed).fetch_add(1, std::memory_order_relaxed);
  peer.answer = refusal_of_proof(error);
  const std::uint64_t now = options_.now_ns();
  peer.answer_ns = now + (wrong ? sources_.wrong(peer.source, now) : PeerSources::kDelayNs);
  options_.rejected(name, peer.name, error);
}

// Authenticated peers no longer count for their source.
void LinkAuthenticator::leave_source(PendingPeer& peer) {
  if (std::exchange(peer.of_source, false)) sources_.left(peer.source);
}

// The client closes the pair on receipt.
void LinkAuthenticator::send(PendingPeer& peer) {
  peer.answer_ns = 0;
  static_cast<void>(
      peer.pair->post(fabric::WorkRequest::send(1, std::as_bytes(std::span(&peer.answer, 1)))));
}

}  // namespace espalier::offload

// SPDX-License-Identifier: Apache-2.0
// For tests: attacks on a node that asks for proofs: guessing, replay, and impersonation of the
// node. The checks return what is wrong; empty: nothing.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "channel/rings/tests/testing/hostile_checks.hpp"
#include "crypto/link_proof.hpp"

namespace espalier::client {

class SecretScene : public HostileScene {
 public:
  SecretScene() : HostileScene(with_secrets(calm())) {}

  static const crypto::SecretBytes& right_secret() {
    static const auto secret = LinkWorld::secret();
    return secret->bytes();
  }
};

inline bool refused(const std::optional<wire::LinkProven>& proven) {
  return proven && proven->token == wire::LinkToken{} &&
         proven->code == static_cast<std::uint32_t>(Code::not_permitted) && proven->detail == 5;
}

/// A proof is valid for its own challenge only.
inline std::string check_proofs_said_again() {
  SecretScene scene;
  auto first = scene.ask_challenge();
  auto second = scene.ask_challenge();
  if (!first || !second) return "no challenge";
  const wire::LinkProof proof = SecretScene::proof_of(*first, "client", scene.right_secret());
  const auto proven = scene.prove(*first, proof);
  if (!proven || proven->code != 0) return "a good proof is refused";
  return refused(scene.prove(*second, proof)) ? "" : "a proof is taken twice";
}

/// Challenges differ in their nonces.
inline std::string check_challenges_differ() {
  SecretScene scene;
  std::set<wire::ProofNonce> seen;
  for (int i = 0; i < 20; ++i) {
    const auto peer = scene.ask_challenge();
    if (!peer) return "no challenge";
    if (!seen.insert(peer->challenge.nonce).second) return "a challenge comes twice";
  }
  return {};
}

/// A name without its secret is refused.
inline std::string check_wrong_secrets() {
  SecretScene scene;
  crypto::SecretBytes wrong = scene.right_secret();
  wrong[31] ^= std::byte{1};
  for (const std::string_view name : {"client", "other", "nobody", "", "client client"}) {
    auto peer = scene.ask_challenge();
    if (!peer) return "no challenge";
    if (!refused(scene.prove(*peer, SecretScene::proof_of(*peer, name, wrong), 4500))) {
      return "somebody is let in as '" + std::string(name) + "' by a wrong secret";
    }
  }
  return scene.serve();
}

/// Replay of a captured hello: a hello is valid once, and each bit of it is signed.
inline std::string check_hellos_said_again() {
  SecretScene scene;
  const wire::LinkHello asks = link_hello(wire::LinkWay::send, HostileScene::kRings);
  auto session = scene.proven_session(asks, "client", scene.right_secret());
  if (!session) return "a good proof is refused";
  const auto hello = session->sign(asks);
  if (!hello) return "not signed";
  for (std::size_t bit = 0; bit < 8 * sizeof *hello; bit += 7) {
    wire::LinkProvenHello other = *hello;
    reinterpret_cast<char*>(&other)[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    if (scene.dial(std::string(base::bytes_of(other)))->accepted()) {
      return "bit " + std::to_string(bit) + " of a hello does not count";
    }
  }
  const auto link = scene.dial(std::string(base::bytes_of(*hello)));
  if (!link->accepted() || !scene.answers(*link)) return "a good hello is refused";
  if (scene.dial(std::string(base::bytes_of(*hello)))->accepted()) return "a hello is taken twice";
  if (!scene.answers(*link)) return "who said it first has lost his pair";
  return scene.serve();
}

/// Replay of a delayed hello: it is void once a later one has arrived, from any address.
inline std::string check_hellos_said_late() {
  SecretScene scene;
  const auto elsewhere = scene.world.world().add_node("e");
  const wire::LinkHello asks = link_hello(wire::LinkWay::send, HostileScene::kRings);
  auto session = scene.proven_session(asks, "client", scene.right_secret());
  if (!session) return "a good proof is refused";
  const auto kept = session->sign(asks);
  if (!kept) return "not signed";
  const auto link = scene.dial_as(*session, wire::LinkWay::send);
  if (!link || !link->accepted() || !scene.answers(*link)) return "a good hello is refused";
  HostileLink late(*elsewhere, 100'000, {});
  late.dial("n", base::bytes_of(*kept));
  scene.wait([&] { return late.welcome() != nullptr || late.ended(); });
  if (late.accepted()) return "a hello is taken late";
  if (!scene.answers(*link)) return "whose hello was taken has lost its pair";
  const auto next = scene.dial_as(*session, wire::LinkWay::send);
  if (!next || !next->accepted() || !scene.answers(*next)) return "the next hello is refused";
  return scene.serve();
}

/// Plays a node without the secret: keeps the proofs that arrive, and accepts all of them.
class RogueNode {
 public:
  explicit RogueNode(fabric::sim::World& world)
      : world_(world), endpoint_(world.add_node("f")), completions_(*endpoint_, 256) {
    listens_ = endpoint_->listen("f").has_value();
    tick();
  }
  ~RogueNode() { *ended_ = true; }
  RogueNode(const RogueNode&) = delete;
  RogueNode& operator=(const RogueNode&) = delete;

  /// The result of a client with a secret.
  Result<std::shared_ptr<FabricConnection>> meet() {
    FabricConnectionOptions options;
    options.request_slots = options.response_slots = 64;
    options.response_rings = 1;
    options.now_ns = [this] { return world_.now_ns(); };
    options.timeout_ns = 2'000'000'000;
    options.secret = LinkWorld::secret();
    return FabricConnection::open({world_.add_node("c" + std::to_string(++clients_)), "f"},
                                  options);
  }
  [[nodiscard]] bool listens() const { return listens_; }
  [[nodiscard]] const std::vector<wire::LinkProof>& proofs() const { return proofs_; }

 private:
  struct Pair {
    std::unique_ptr<fabric::QueuePair> pair;
    wire::LinkChallenge challenge{};
    wire::LinkProof proof{};
    wire::LinkProven proven{};
  };

  void tick() {
    endpoint_->progress();
    while (const auto request = endpoint_->next_request()) accept(*request);
    fabric::Completion completion;
    while (completions_.poll({&completion, 1}) != 0) {
      const bool came = completion.opcode == fabric::Opcode::receive &&
                        completion.status == fabric::Status::success;
      for (const auto& pair : pairs_) {
        if (came && pair->pair->number() == completion.pair) answer(*pair);
      }
    }
    world_.after(5'000, [this, ended = ended_] {
      if (!*ended) tick();
    });
  }
  void accept(const fabric::ConnectRequest& request) {
    auto made = std::make_unique<Pair>();
    wire::LinkWelcome welcome{};
    welcome.magic = wire::kLinkMagic;
    welcome.protocol = wire::kLinkProtocol;
    welcome.way = static_cast<std::uint8_t>(wire::LinkWay::prove);
    welcome.node_id = 5;
    fabric::QueuePairOptions options;
    options.sends = &completions_;
    auto pair = endpoint_->accept(request, options, std::as_bytes(std::span(&welcome, 1)));
    if (!pair) return;
    made->pair = std::move(*pair);
    const fabric::Receive receive{0, std::as_writable_bytes(std::span(&made->proof, 1))};
    made->pair->post_receives({&receive, 1});
    made->challenge.magic = wire::kProofMagic;
    made->challenge.step = static_cast<std::uint32_t>(wire::ProofStep::challenge);
    made->challenge.node_id = 5;
    made->pair->post(fabric::WorkRequest::send(1, std::as_bytes(std::span(&made->challenge, 1))));
    pairs_.push_back(std::move(made));
  }
  void answer(Pair& pair) {
    proofs_.push_back(pair.proof);
    pair.proven.magic = wire::kProofMagic;
    pair.proven.step = static_cast<std::uint32_t>(wire::ProofStep::proven);
    pair.proven.token = {1, 2};
    pair.proven.digest = pair.proof.digest;  // its best forgery
    pair.pair->post(fabric::WorkRequest::send(2, std::as_bytes(std::span(&pair.proven, 1))));
  }

  fabric::sim::World& world_;
  std::unique_ptr<fabric::Endpoint> endpoint_;
  fabric::CompletionQueue completions_;
  std::vector<std::unique_ptr<Pair>> pairs_;
  std::vector<wire::LinkProof> proofs_;
  std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);
  bool listens_ = false;
  int clients_ = 0;
};

/// Reflection: a node that sends back a client's message has proven nothing, and repeating a
/// challenge reveals nothing to it.
inline std::string check_rogue_nodes() {
  fabric::sim::World world(3, {});
  RogueNode node(world);
  if (!node.listens()) return "cannot listen";
  std::set<wire::ProofNonce> seen;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto met = node.meet();
    if (met) return "a rogue node has a client";
    if (met.error() != Error{Code::not_permitted, 0, 6}) {
      return "the client says of a rogue node: " + message(met.error());
    }
    if (node.proofs().size() != i + 1) return "no proof came";
    if (!seen.insert(node.proofs().back().nonce).second) return "two proofs have the same number";
  }
  return {};
}

}  // namespace espalier::client

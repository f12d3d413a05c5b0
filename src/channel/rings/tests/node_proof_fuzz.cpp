// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes from a node to a client that has a secret, before there is a session: welcomes,
// challenges, results of a proof. The client sends nothing but proofs of challenges, ends in time,
// and accepts a node only if it has signed this exchange with the same secret.
//
// Input: for each connection the node's messages in order, and the changes of them.
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/testing/fuzz_input.hpp"
#include "channel/rings/link_prover.hpp"
#include "channel/rings/tests/testing/hostile_link.hpp"
#include "channel/rings/tests/testing/link_world.hpp"
#include "crypto/link_proof.hpp"
#include "fabric/sim/world.hpp"

namespace espalier::client {
namespace {

using base::FuzzInput;
using base::want;

constexpr std::uint64_t kTimeoutNs = 200'000'000;
constexpr std::uint64_t kNodeId = 5;

/// Changes some of a correct message. Returns whether anything changed.
bool change(FuzzInput& input, std::string& said) {
  const std::string before = said;
  for (std::uint64_t changes = input.below(4); changes != 0; --changes) {
    switch (input.below(4)) {
      case 0: said.resize(input.below(said.size() + 1)); break;
      case 1: said.append(input.below(100), static_cast<char>(input.byte())); break;
      default:
        if (!said.empty()) said[input.below(said.size())] ^= static_cast<char>(input.byte());
    }
  }
  return said != before;
}

template <class T>
std::string text_of(const T& message) {
  return std::string(base::bytes_of(message));
}
/// The client's interpretation of a node's message.
template <class T>
std::optional<T> read_as(const std::string& said, wire::ProofStep step) {
  T message{};
  if (said.size() != sizeof message) return std::nullopt;
  std::memcpy(&message, said.data(), sizeof message);
  const bool good =
      message.magic == wire::kProofMagic && message.step == static_cast<std::uint32_t>(step);
  return good ? std::optional(message) : std::nullopt;
}

/// One connection of the client, at the node.
struct Pair {
  std::unique_ptr<fabric::QueuePair> pair;
  std::deque<std::string> said;  // in order; the fabric reads it
  std::byte heard[256] = {};
  std::optional<wire::LinkProof> proof;
  bool as_it_should = true;  // all messages of the node
};

class FuzzedNode {
 public:
  FuzzedNode(fabric::sim::World& world, FuzzInput& input)
      : world_(world),
        input_(input),
        secret_(LinkWorld::secret()),
        endpoint_(world.add_node("n")),
        completions_(*endpoint_, 1024) {
    want(endpoint_->listen("n").has_value(), "cannot listen");
    tick();
  }
  ~FuzzedNode() { *ended_ = true; }
  FuzzedNode(const FuzzedNode&) = delete;
  FuzzedNode& operator=(const FuzzedNode&) = delete;

  /// Checks that the client's result follows from the messages.
  void check(const Result<ProvenSession>& result) {
    const Pair* const last = pairs_.empty() ? nullptr : pairs_.back().get();
    if (!result) {
      want(result.error().code != Code::invalid, "an error without a code");
      want(last == nullptr || !last->as_it_should || !last->proof, "a good node is not believed");
      return;
    }
    want(last != nullptr && last->proof && last->said.size() >= 2, "it believes who said nothing");
    const auto challenge = read_as<wire::LinkChallenge>(last->said[0], wire::ProofStep::challenge);
    const auto proven = read_as<wire::LinkProven>(last->said[1], wire::ProofStep::proven);
    want(challenge && proven && proven->code == 0, "it believes what is no message");
    const auto digest = crypto::node_digest(secret_->bytes(), *challenge, *last->proof, *proven);
    want(digest && *digest == proven->digest, "it believes who does not know the secret");
    crypto::SecretBytes key{};
    want(crypto::session_key(secret_->bytes(), *challenge, *last->proof, key).has_value(),
         "no key");
    want(*result->key == key, "it has another key");
    want(result->token == proven->token && result->token != wire::LinkToken{}, "another session");
    want(result->node_id == challenge->node_id, "another node");
  }

 private:
  void tick() {
    endpoint_->progress();
    while (const auto request = endpoint_->next_request()) accept(*request);
    fabric::Completion completion;
    while (completions_.poll({&completion, 1}) != 0) {
      const bool came = completion.opcode == fabric::Opcode::receive &&
                        completion.status == fabric::Status::success;
      for (const auto& pair : pairs_) {
        if (came && pair->pair->number() == completion.pair) take(*pair, completion.bytes);
      }
    }
    world_.after(5'000, [this, ended = ended_] {
      if (!*ended) tick();
    });
  }

  void accept(const fabric::ConnectRequest& request) {
    wire::LinkHello hello{};
    want(request.data.size() == sizeof hello, "the client says another hello");
    std::memcpy(&hello, request.data.data(), sizeof hello);
    want(hello.way == static_cast<std::uint8_t>(wire::LinkWay::prove), "it asks for another way");
    if (input_.below(16) == 15) return endpoint_->reject(request);
    auto pair = std::make_unique<Pair>();
    wire::LinkWelcome welcome{};
    welcome.magic = wire::kLinkMagic;
    welcome.protocol = wire::kLinkProtocol;
    welcome.way = static_cast<std::uint8_t>(wire::LinkWay::prove);
    welcome.node_id = kNodeId;
    if (input_.below(8) == 7) {
      welcome.code = input_.odd_number<std::uint32_t>();
      welcome.detail = input_.odd_number<std::uint32_t>();
      pair->as_it_should = welcome.code == 0;
    }
    std::string said = text_of(welcome);
    if (change(input_, said)) pair->as_it_should = false;
    said.resize(std::min(said.size(), fabric::kAcceptDataMax));
    fabric::QueuePairOptions options;
    options.sends = &completions_;
    auto made = endpoint_->accept(request, options, std::as_bytes(std::span(said)));
    if (!made) return;
    pair->pair = std::move(*made);
    const fabric::Receive receive{0, pair->heard};
    pair->pair->post_receives({&receive, 1});
    Pair& begun = *pairs_.emplace_back(std::move(pair));
    if (input_.below(8) == 7) say_anything(begun);
    challenge(begun);
  }

  void challenge(Pair& pair) {
    wire::LinkChallenge challenge{};
    challenge.magic = wire::kProofMagic;
    challenge.step = static_cast<std::uint32_t>(wire::ProofStep::challenge);
    challenge.node_pair = pair.pair->number();
    challenge.node_id = kNodeId;
    input_.fill(std::as_writable_bytes(std::span(challenge.nonce)).first(input_.below(33)));
    say(pair, text_of(challenge));
    if (input_.below(8) == 7) say_anything(pair);  // before anything arrived
  }

  // Handles the client's only message.
  void take(Pair& pair, std::size_t bytes) {
    want(!pair.proof, "the client says more than a proof");
    wire::LinkProof proof{};
    want(bytes == sizeof proof, "the client says what is no proof");
    std::memcpy(&proof, pair.heard, sizeof proof);
    const auto challenge =
        read_as<wire::LinkChallenge>(pair.said.front(), wire::ProofStep::challenge);
    want(challenge.has_value(), "a proof of what is no challenge");
    const auto digest = crypto::client_digest(secret_->bytes(), *challenge, proof);
    want(digest && *digest == proof.digest, "a proof that is none");
    pair.proof = proof;
    answer(pair, *challenge);
  }

  void answer(Pair& pair, const wire::LinkChallenge& challenge) {
    wire::LinkProven proven{};
    proven.magic = wire::kProofMagic;
    proven.step = static_cast<std::uint32_t>(wire::ProofStep::proven);
    proven.token = {1 + input_.below(2), 2};
    switch (input_.below(8)) {
      case 5: proven.code = input_.odd_number<std::uint32_t>(); break;
      case 6: proven.token = {}; break;
      case 7: pair.pair->close(); return static_cast<void>(pair.as_it_should = false);
      default: break;
    }
    crypto::SecretBytes secret = secret_->bytes();
    secret[input_.below(secret.size())] ^= static_cast<std::byte>(input_.byte());
    if (secret != secret_->bytes() || proven.code != 0 || proven.token == wire::LinkToken{}) {
      pair.as_it_should = false;
    }
    proven.digest = crypto::node_digest(secret, challenge, *pair.proof, proven).value();
    if (input_.below(16) == 15) proven.digest = pair.proof->digest;  // a reflected digest
    if (proven.digest == pair.proof->digest) pair.as_it_should = false;
    say(pair, text_of(proven));
  }

  void say(Pair& pair, std::string said) {
    if (change(input_, said)) pair.as_it_should = false;
    post(pair, std::move(said));
  }
  void say_anything(Pair& pair) {
    std::string said(input_.below(300), '\0');
    input_.fill(std::as_writable_bytes(std::span(said)));
    pair.as_it_should = false;
    post(pair, std::move(said));
  }
  static void post(Pair& pair, std::string said) {
    const std::string& kept = pair.said.emplace_back(std::move(said));
    pair.pair->post(fabric::WorkRequest::send(0, std::as_bytes(std::span(kept))));
  }

  fabric::sim::World& world_;
  FuzzInput& input_;
  const std::shared_ptr<const KnownSecret> secret_;
  std::unique_ptr<fabric::Endpoint> endpoint_;
  fabric::CompletionQueue completions_;
  std::vector<std::unique_ptr<Pair>> pairs_;
  std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);
};

void run(FuzzInput input) {
  fabric::sim::World world(3, {});
  FuzzedNode node(world, input);
  const auto client = world.add_node("c");
  LinkProverOptions options;
  options.timeout_ns = kTimeoutNs;
  options.pair_timeout_ns = 1'000'000;
  options.now_ns = [&] { return world.now_ns(); };
  const std::uint64_t begin = world.now_ns();
  const auto secret = LinkWorld::secret();
  const auto result = prove_link(*client, "n", *secret,
                                 link_hello(wire::LinkWay::send, LinkWorld::kRings), options);
  want(world.now_ns() - begin < 3 * kTimeoutNs, "it does not end in time");
  node.check(result);
}

}  // namespace
}  // namespace espalier::client

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::client::run({data, size});
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes from a peer to a node that asks for proofs: as proofs, and as hellos of sessions.
// Only a peer that proves knowledge of a secret is accepted, and a client beside it is served
// through the pair that it had.
//
// Input: for each act its type, and the change of a correct message, or the message in its place.
#include <memory>
#include <string>

#include "base/testing/fuzz_input.hpp"
#include "channel/rings/tests/testing/secret_checks.hpp"

namespace espalier::client {
namespace {

using base::FuzzInput;
using base::want;

constexpr int kActsMax = 12;
constexpr int kInputsOfAScene = 64;

/// A node and its client, for several inputs, since they take long to make.
struct Stage {
  SecretScene scene;
  int inputs = 0;
};

Stage& stage_for_an_input() {
  static std::unique_ptr<Stage> stage;
  if (stage != nullptr && stage->inputs == kInputsOfAScene) stage.reset();
  if (stage == nullptr) stage = std::make_unique<Stage>();
  ++stage->inputs;
  return *stage;
}

/// Changes some of a correct message. Returns whether anything changed.
bool change(FuzzInput& input, std::string& said) {
  const std::string before = said;
  for (std::uint64_t changes = input.below(4); changes != 0; --changes) {
    switch (input.below(4)) {
      case 0: said.resize(input.below(said.size() + 1)); break;
      case 1: said.append(input.below(200), static_cast<char>(input.byte())); break;
      default:
        if (!said.empty()) said[input.below(said.size())] ^= static_cast<char>(input.byte());
    }
  }
  return said != before;
}

void send_as_proof(SecretScene& scene, FuzzInput& input) {
  auto peer = scene.ask_challenge();
  if (!peer) return;  // the limit of pending peers is reached
  std::string said(base::bytes_of(SecretScene::proof_of(*peer, "client", scene.right_secret())));
  const bool changed = change(input, said);
  const std::uint64_t proven = scene.world.clients().authentication_counts()->accepted;
  if (input.below(4) == 0) {
    peer->link->send(said, static_cast<std::uint32_t>(input.below(8)) << 29);
  } else {
    peer->link->send(said, std::nullopt);
  }
  if (input.below(2) == 0) peer->link->send(said, std::nullopt);  // a second time
  const auto answer = scene.answer(*peer);
  const bool is_in = scene.world.clients().authentication_counts()->accepted != proven;
  want(!is_in || !changed, "somebody is let in by what is no proof");
  if (changed && answer) {
    want(answer->code != 0 && answer->token == wire::LinkToken{}, "a session is told");
  }
}

void ask_for_a_pair(SecretScene& scene, FuzzInput& input) {
  const auto way = input.pick({wire::LinkWay::write, wire::LinkWay::send, wire::LinkWay::reads,
                               wire::LinkWay::writes, wire::LinkWay::prove});
  wire::LinkProvenHello hello{link_hello(way, LinkWorld::kRings), 0};
  if (input.below(2) == 0) hello.hello.token = scene.world.first_token();
  hello.hello.reserved = input.odd_number<std::uint32_t>();
  std::string said(base::bytes_of(hello));
  static_cast<void>(change(input, said));
  // A wrong signature is refused later than this test waits.
  const auto link = scene.begin(said.substr(0, fabric::kConnectDataMax));
  scene.wait([&] { return link->welcome() != nullptr || link->ended(); }, 1);
  want(!link->accepted() || link->accepted_pending(), "a pair of a session is given to nobody");
}

void run(FuzzInput input) {
  Stage& stage = stage_for_an_input();
  SecretScene& scene = stage.scene;
  for (int acts = 0; acts < kActsMax && !input.over(); ++acts) {
    input.below(2) == 0 ? send_as_proof(scene, input) : ask_for_a_pair(scene, input);
  }
  const std::string wrong = scene.serve();
  want(wrong.empty(), wrong.c_str());
}

}  // namespace
}  // namespace espalier::client

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::client::run({data, size});
  return 0;
}

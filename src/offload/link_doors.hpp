// SPDX-License-Identifier: Apache-2.0
// Where clients over a fabric prove who they are, before they have anything of the node's
// (wire/link_proof.hpp).
//
// A door is a queue pair of no domain, so nothing is reached through it; it has a challenge, room
// for one message, and five seconds. What comes of it is a session, whose pairs are others.
//
// What never happens
// - Who has not proven who he is holds more than a door, or longer than its time.
// - There are more than kDoorsMax doors; who comes when all are taken is refused.
// - A challenge is good twice: its nonce is drawn, and its door takes one proof.
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

struct LinkDoorsOptions {
  std::uint64_t node_id = 0;
  std::uint64_t pair_timeout_ns = fabric::QueuePairOptions{}.timeout_ns;
  std::function<std::uint64_t()> now_ns;
  /// Random numbers that nobody can guess.
  std::function<Result<std::uint64_t>()> draw;
  /// Makes a session for who has proven who he is, whose pairs are asked for by this key.
  std::function<Result<wire::LinkToken>(const wire::LinkHello&, const Access&,
                                        const crypto::SecretBytes& key)>
      admit;
};

/// Numbers about them. Thread: any.
struct DoorCounts {
  std::atomic<std::uint64_t> proven{0};
  std::atomic<std::uint64_t> wrong{0};  ///< proofs that were none
  std::atomic<std::uint64_t> late{0};   ///< doors at which nobody proved anything in time
};

class LinkDoors {
 public:
  static constexpr std::size_t kDoorsMax = 256;
  static constexpr std::uint64_t kOpenNs = 5'000'000'000;
  /// Wrong proofs are answered so much later: who guesses learns slowly.
  static constexpr std::uint64_t kWrongNs = 250'000'000;

  /// `endpoint` and `secrets` outlive it.
  LinkDoors(fabric::Endpoint& endpoint, const Secrets& secrets, LinkDoorsOptions options);
  ~LinkDoors();
  LinkDoors(const LinkDoors&) = delete;
  LinkDoors& operator=(const LinkDoors&) = delete;

  /// Opens one for who asks, and challenges him. Errors: too_many_participants (all are taken),
  /// those of Endpoint::accept().
  Result<void> open(const fabric::ConnectRequest& request, const wire::LinkHello& hello);
  /// Takes proofs, answers them, and closes what is late. Returns whether anything happened.
  bool turn();
  [[nodiscard]] std::size_t size() const { return doors_.size(); }
  [[nodiscard]] const DoorCounts& counts() const { return counts_; }

 private:
  struct Door {
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
  void prove(Door& door, std::span<const std::byte> message);
  [[nodiscard]] Result<void> check(Door& door, const wire::LinkProof& proof);
  void refuse(Door& door, const Error& error);
  void send(Door& door);

  fabric::Endpoint& endpoint_;
  const Secrets& secrets_;
  LinkDoorsOptions options_;
  fabric::CompletionQueue completions_;
  fabric::ReceiveQueue receives_;
  std::vector<wire::LinkProof> buffers_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Door>> doors_;  // by their pairs' numbers
  std::uint64_t taken_ = 0;                                         // completions, ever
  DoorCounts counts_;
};

}  // namespace espalier::offload

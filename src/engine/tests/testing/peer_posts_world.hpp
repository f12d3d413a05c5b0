// SPDX-License-Identifier: Apache-2.0
// For tests: requests of several clients that post to two peers, over links that lack room at times
// and complete posts in any way, and clients that disconnect. A seed decides what happens.
//
// Thread: one at a time, and one world at a time.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "engine/peer_posts.hpp"
#include "engine/tests/testing/manual_link.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"

namespace espalier::offload {

class PeerPostsWorld {
 public:
  explicit PeerPostsWorld(std::uint64_t seed) : random_(seed) {
    current_ = this;
    FixtureOptions options;
    options.make_part = make_peers;
    serving_ = std::make_unique<SchedulerFixture>(options, std::uint64_t{64} << 20, kCalls);
    for (SchedulerClient*& client : clients_) client = &serving_->connect();
  }
  ~PeerPostsWorld() {
    for (SchedulerClient* const client : clients_) serving_->disconnect(*client);
    while (!serving_->scheduler().idle()) {
      end_all();
      serving_->turn();
    }
    serving_.reset();
    current_ = nullptr;
  }
  PeerPostsWorld(const PeerPostsWorld&) = delete;
  PeerPostsWorld& operator=(const PeerPostsWorld&) = delete;

  /// Returns what went wrong; empty: nothing.
  std::string run() {
    for (int turn = 0; turn < 400 && wrong_.empty(); ++turn) {
      for (SchedulerClient*& client : clients_) {
        if (random_.chance(0.5)) ask(client);
        if (random_.chance(0.01)) replace(client);
      }
      for (ManualLink* const link : links_) {
        link->depth = random_.chance(0.2) ? random_.between(1, 8) : link->depth;
        const std::size_t left = link->in_flight.size() - link->to_end.size();
        for (std::uint64_t i = random_.between(0, left); i != 0; --i) end_one(*link);
      }
      serving_->turn();
      receive();
    }
    for (int turn = 0; turn < 10'000 && wrong_.empty() && !expected_.empty(); ++turn) {
      end_all();
      for (SchedulerClient* const client : clients_) (*client)->flush();
      serving_->turn();
      receive();
    }
    if (wrong_.empty() && !expected_.empty()) wrong_ = "a request was never answered";
    return wrong_;
  }

 private:
  static constexpr std::size_t kPeers = 2;
  static constexpr std::uint64_t kApart = 100;  // between addresses of two requests
  static constexpr std::uint32_t kReadsMax = 5;

  struct State {
    std::array<std::uint64_t, kReadsMax> words{};
  };

  // Reads from the first peer as often as the argument says, and writes once to the second. The
  // answer is a letter for each completion, or '!' if the data of a READ is missing.
  static Next step(Call& call) {
    State& state = call.state<State>();
    const std::uint64_t address = call.map_number() * kApart;
    if (const auto ends = peer_ends(call); !ends.empty()) {
      std::string letters;
      for (std::size_t i = 0; i < ends.size(); ++i) {
        const bool read = i < call.argument() && ends[i].how == fabric::PostEnd::done;
        letters += read && state.words[i] != address + i ? '!' : letter(ends[i].how);
      }
      return call.answer({}, {letters});
    }
    PeerBatch batch(call);
    for (std::uint32_t i = 0; i < call.argument(); ++i) {
      batch.read(0, 1, std::as_writable_bytes(std::span(&state.words[i], 1)), 7, address + i);
      current_->posted_[0].push_back(address + i);
    }
    batch.write(1, 1, std::as_bytes(std::span(&state.words[0], 1)), 7, address);
    current_->posted_[1].push_back(address);
    return batch.completed();
  }
  static char letter(fabric::PostEnd how) { return "drun"[static_cast<std::size_t>(how)]; }

  static void make_peers(TypedSlots<NodePart>& parts) {
    const auto make = [](std::function<void()> wake) -> std::unique_ptr<channel::PeerLink> {
      auto link = std::make_unique<ManualLink>(std::move(wake));
      current_->links_.push_back(link.get());
      return link;
    };
    parts.make<NodePeers>(std::vector<NodePeers::Peer>{{"b", make}, {"c", make}});
  }

  void ask(SchedulerClient* client) {
    const auto number = ++asked_;
    const auto reads = static_cast<std::uint32_t>(random_.between(0, kReadsMax));
    (*client)->post(message_of(request_of(kStep, number, number, reads)));
    (*client)->ring();
    expected_[number] = {client, reads};
  }
  void replace(SchedulerClient*& client) {
    std::erase_if(expected_, [&](const auto& each) { return each.second.client == client; });
    serving_->disconnect(*client);
    client = &serving_->connect();
  }
  // Posts of one link complete in order.
  void end_one(ManualLink& link) {
    const std::size_t peer = &link == links_[0] ? 0 : 1;
    constexpr std::array kOthers{fabric::PostEnd::refused, fabric::PostEnd::unknown,
                                 fabric::PostEnd::not_sent};
    const auto how =
        random_.chance(0.1) ? kOthers[random_.below(kOthers.size())] : fabric::PostEnd::done;
    const std::uint64_t address = link.in_flight[link.to_end.size()].request.remote;
    letters_[peer][address] = letter(how);
    link.end(how);
  }
  void end_all() {
    for (ManualLink* const link : links_) {
      while (link->to_end.size() < link->in_flight.size()) end_one(*link);
    }
  }
  void receive() {
    for (std::size_t peer = 0; peer < kPeers; ++peer) {
      const auto& order = links_[peer]->order;
      for (; checked_[peer] < order.size(); ++checked_[peer]) {
        if (order[checked_[peer]] != posted_[peer][checked_[peer]]) {
          wrong_ = "a post has overtaken another";
        }
      }
    }
    for (SchedulerClient* const client : clients_) {
      while (const auto response = (*client)->receive()) check(*response);
    }
  }
  void check(const Response& response) {
    const std::uint32_t number = response.header.tag;
    const auto at = expected_.find(number);
    if (at == expected_.end()) {
      wrong_ = "an answer that nobody waits for";
      return;
    }
    std::string letters;
    for (std::uint32_t i = 0; i < at->second.reads; ++i) {
      letters += letters_[0][number * kApart + i];
    }
    letters += letters_[1][number * kApart];
    if (response.payload != letters) {
      wrong_ = "ends " + letters + " are answered as " + response.payload;
    }
    expected_.erase(at);
  }

  static constexpr auto kStep = static_cast<wire::OffloadId>(wire::kOwnOffloadIds);
  static constexpr Offload kCalls[] = {{{.id = kStep,
                                         .name = "post",
                                         .format = "",
                                         .summary = "posts to peers",
                                         .right = Right::none,
                                         .limits = {}},
                                        {.step = step, .executor = &kPeerPosts}}};
  inline static PeerPostsWorld* current_ = nullptr;

  struct Expected {
    SchedulerClient* client;
    std::uint32_t reads;
  };
  base::Random random_;
  std::vector<ManualLink*> links_;
  std::array<std::vector<std::uint64_t>, kPeers> posted_;  // addresses, as steps posted them
  std::array<std::size_t, kPeers> checked_{};              // of them
  std::array<std::map<std::uint64_t, char>, kPeers> letters_;
  std::map<std::uint32_t, Expected> expected_;
  std::uint32_t asked_ = 0;
  std::string wrong_;
  std::unique_ptr<SchedulerFixture> serving_;
  std::array<SchedulerClient*, 3> clients_{};
};

}  // namespace espalier::offload

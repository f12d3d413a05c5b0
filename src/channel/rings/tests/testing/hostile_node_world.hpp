// SPDX-License-Identifier: Apache-2.0
// For tests: a client, the production code, that sends a few requests to a hostile node
// (hostile_node.hpp) in a simulated fabric. Whatever the node does, each request completes once,
// and when the node is gone the client detects that in time.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "channel/rings/fabric_connection.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "channel/rings/tests/testing/hostile_node.hpp"

namespace espalier::client {

/// Counts over one or more worlds.
struct NodeReached {
  std::uint64_t opened = 0;
  std::uint64_t refused = 0;
  std::uint64_t answered = 0;  // requests
  std::uint64_t lost = 0;
  std::uint64_t resumed = 0;
};

class HostileNodeWorld {
 public:
  /// `secret`: that of the client, which the node knows, too; or null.
  HostileNodeWorld(Choices& choices, wire::LinkWay way,
                   std::shared_ptr<const KnownSecret> secret = nullptr)
      : choices_(choices), way_(way), secret_(secret), world_(1), node_(world_, "n", secret) {
    act();
  }

  /// Returns what is wrong; empty: nothing.
  std::string run(NodeReached& reached) {
    FabricConnectionOptions options;
    options.way = way_;
    options.request_slots = 64;
    options.response_slots = 64;
    options.response_rings = 1;
    options.now_ns = [this] { return world_.now_ns(); };
    options.pair_timeout_ns = 100'000;
    options.timeout_ns = kTimeoutNs;
    options.silence_ns = 1'000'000;
    options.secret = secret_;
    const std::uint64_t begin = world_.now_ns();
    auto connection =
        FabricConnection::open(fabric::Connecting{world_.add_node("c"), "n"}, options);
    if (world_.now_ns() - begin > kTimeoutNs + kGraceNs) return "it was tried for too long";
    if (!connection) return ++reached.refused, std::string();
    ++reached.opened;
    std::string wrong = ask(*connection, reached);
    reached.resumed += (*connection)->resumed();
    return wrong;
  }

 private:
  static constexpr std::uint64_t kTimeoutNs = 5'000'000;
  static constexpr std::uint64_t kGraceNs = 20'000'000;
  static constexpr std::uint64_t kPauseNs = 5'000;  // between two polls of the client
  static constexpr int kActsMax = 400;

  /// Reads every byte that it is given, and counts completions.
  struct Reader final : Handler {
    void done(const Completion& completion) override {
      if (completion.tag >= times.size()) return void(++strange);
      ++times[completion.tag];
      lost += completion.error.code == Code::connection_lost ? 1 : 0;
      read(completion.key);
      read(completion.value);
    }
    bool items(std::uint64_t tag, std::span<const Item> run) override {
      if (tag >= times.size() || times[tag] != 0) ++strange;
      for (const Item& item : run) {
        read(item.key);
        read(item.value);
      }
      return sum % 8 != 0;
    }
    void read(std::string_view text) {
      for (const char c : text) sum = sum * 31 + static_cast<unsigned char>(c);
    }
    std::vector<int> times;
    std::uint64_t strange = 0;
    std::uint64_t lost = 0;
    std::uint64_t sum = 1;
  };

  // The node's program: it acts in sequence, and then crashes.
  void act() {
    if (choices_.over() || acts_ == kActsMax) {
      gone_ns_ = world_.now_ns();
      return node_.crash();
    }
    ++acts_;
    node_.act(choices_);
    world_.after(1'000 * (1 + choices_.below(16)), [this] { act(); });
  }

  std::string ask(const std::shared_ptr<FabricConnection>& connection, NodeReached& reached) {
    auto rings = ThreadRings::open(connection);
    if (!rings) return "no lane";
    RemoteRequests requests(**rings, 8);
    constexpr Op kOps[] = {Op::get,          Op::put,        Op::floor, Op::scan,
                           Op::scan_reverse, Op::scan_floor, Op::erase, Op::get};
    std::vector<Request> asked(std::size(kOps));
    for (std::size_t i = 0; i < asked.size(); ++i) {
      asked[i].op = kOps[i];
      asked[i].tag = i;
      asked[i].key = "key";
      asked[i].value = "value";
    }
    Reader reader;
    reader.times.resize(asked.size());
    requests.submit(asked, reader, {1, 460, 0});
    const auto late = [this] {
      return gone_ns_ != 0 && world_.now_ns() > gone_ns_ + kTimeoutNs + kGraceNs;
    };
    while (requests.advance() != 0 && !late()) world_.run_for(kPauseNs);
    const bool all = requests.pending() == 0;
    while (!connection->ask_lost() && !late()) world_.run_for(kPauseNs);
    if (!connection->lost()) {
      connection->hang_up();
      return "the client does not find out that the node is gone";
    }
    if (!all) return "a request has no end";
    for (const int times : reader.times) {
      if (times != 1) return "a request did not end once";
    }
    if (reader.strange != 0) return "something was told of no request";
    reached.lost += reader.lost;
    reached.answered += asked.size() - reader.lost;
    return {};
  }

  Choices& choices_;
  const wire::LinkWay way_;
  const std::shared_ptr<const KnownSecret> secret_;
  fabric::sim::World world_;
  HostileNode node_;
  std::uint64_t gone_ns_ = 0;
  int acts_ = 0;
};

}  // namespace espalier::client

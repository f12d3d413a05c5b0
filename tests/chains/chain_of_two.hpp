// SPDX-License-Identifier: Apache-2.0
// Two nodes in a chain, each a process, and the client that has both addresses, or asks where the
// chain is kept.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/temporary_folder.hpp"
#include "chain/membership/membership.hpp"
#include "espalier/espalier.hpp"
#include "espalier/hash_map.hpp"
#include "log/format.hpp"
#include "log/posix_folder.hpp"
#include "log/recovery.hpp"
#include "log/store_file.hpp"
#include "node/node.hpp"
#include "tests/support/child.hpp"
#include "tests/support/node_config.hpp"

namespace espalier::test {

inline constexpr std::uint64_t kSoonNs = 60'000'000'000;  // only a machine that hangs exceeds it
inline constexpr std::uint64_t kSegmentBytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kLogBytesMax = 24 * kSegmentBytes;

/// Waits for the start signal, becomes a member, and reports that it serves, or why it does not.
/// Lives until it is killed.
inline int be_member(Line& line, const node::Config& config) {
  std::string order;
  if (!line.receive(order)) return 0;
  std::string mistake;
  node::NodeOptions options;
  options.data_mistake = &mistake;
  options.segment_bytes = kSegmentBytes;
  options.chain_report = [&line](const std::string& text) { line.send("report: " + text); };
  options.chain_ended = [&line](const std::string& why) { line.send("ended: " + why); };
  auto node = node::Node::start(config, options);
  line.send(node ? "serves" : "cannot start: " + mistake);
  while (line.receive(order)) {
  }
  return 0;
}

/// Retries until success, like a client of a node that may be killed.
template <class Work>
auto until_done(const Work& work) -> decltype(work()) {
  for (const base::Stopwatch watch;;) {
    auto done = work();
    if (done || watch.elapsed_ns() > kSoonNs) return done;
    const Code code = done.error().code;
    if (code != Code::connection_lost && code != Code::system) return done;
    ::poll(nullptr, 0, 2);
  }
}

/// The value of a key; nothing: there is none.
template <class OfMap>
Result<std::optional<std::string>> value(OfMap& map, const std::string& key) {
  auto found = map.get(key);
  if (!found) return std::unexpected(found.error());
  if (!*found) return std::nullopt;
  return std::string((*found)->value);
}

class ChainOfTwo : public ::testing::Test {
 protected:
  void SetUp() override {
    chain::View view{.chain = 9, .epoch = 1, .fence_ms = 1000, .members = {}};
    for (const char* const name : {"a", "b"}) {
      const auto number = static_cast<std::uint32_t>(view.members.size() + 1);
      view.members.push_back(
          {number, name, "shm:" + (folder_ / name).string(), "unix:" + socket_of(name)});
    }
    ASSERT_EQ(membership()->replace(view), true);
    for (std::size_t i = 0; i < kLives; ++i) {
      for (const char* const name : {"a", "b"}) prepare(name);
    }
    for (const char* const name : {"a", "b"}) begin(name);
  }
  [[nodiscard]] std::unique_ptr<chain::Membership> membership() const {
    return std::move(*chain::open_membership(kept_at()));
  }
  /// Where the chain is kept.
  [[nodiscard]] virtual std::string kept_at() const { return (folder_ / "chain").string(); }
  [[nodiscard]] std::string socket_of(const std::string& name) const {
    return (folder_ / (name + ".socket")).string();
  }
  [[nodiscard]] std::string data_of(const std::string& name) const {
    return (folder_ / (name + ".data")).string();
  }
  /// Forks the processes, before any client has threads.
  void prepare(const std::string& name) {
    node::Config config = node_config(folder_);
    config.node.socket = socket_of(name);
    config.data.dir = data_of(name);
    config.data.log_bytes_max = kLogBytesMax;
    config.data.checkpoint_log_bytes = kLogBytesMax / 4;
    config.chain = {name, kept_at()};
    members_.emplace_back([config](Line& line) { return be_member(line, config); });
    waiting_.push_back(name);
  }
  /// Starts or restarts the member of this name. Returns its index in members_.
  std::size_t begin(const std::string& name) {
    const auto found = std::ranges::find(waiting_, name);
    const auto place = static_cast<std::size_t>(found - waiting_.begin());
    if (found == waiting_.end()) {
      ADD_FAILURE() << "it has no more lives";
      return 0;
    }
    found->clear();
    EXPECT_TRUE(members_[place].line().send("begin"));
    return place;
  }
  [[nodiscard]] virtual std::string address() const {
    return "chain://unix:" + socket_of("a") + ",unix:" + socket_of("b");
  }
  [[nodiscard]] Result<Store> connect_to_chain() const {
    return until_done([&] { return Store::connect(address()); });
  }
  /// The log records of a member that was killed.
  [[nodiscard]] std::vector<std::string> records_of(const std::string& name) const {
    std::vector<std::string> records;
    log::PosixFolder folder(data_of(name));
    const auto store = log::find_store_file(folder);
    if (!store || !*store) return records;
    log::PosixFolder log_folder(data_of(name) + "/log");
    log::RecoveryTerms terms;
    terms.node = **store;
    const auto read = log::recover(
        log_folder, terms, [&](std::uint64_t, std::span<const std::byte> record) -> Result<void> {
          records.emplace_back(reinterpret_cast<const char*>(record.data()), record.size());
          return {};
        });
    EXPECT_TRUE(read) << (read ? "" : log::message(read.error()));
    return records;
  }
  /// Bytes of a member's log segments.
  [[nodiscard]] std::uint64_t log_bytes_of(const std::string& name) const {
    std::uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(data_of(name) + "/log")) {
      if (log::segment_of(entry.path().filename().string(), log::kInUse)) bytes += kSegmentBytes;
    }
    return bytes;
  }
  void kill_all() {
    for (Child& member : members_) {
      member.kill();
      member.wait();
    }
  }

  base::TemporaryFolder folder_;
  static constexpr std::size_t kLives = 6;  // of each member
  std::vector<Child> members_;              // a, b, a, b ...
  std::vector<std::string> waiting_;        // names of those not started yet
};

}  // namespace espalier::test

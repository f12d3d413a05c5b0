// SPDX-License-Identifier: Apache-2.0
// What other users of the machine may do at a node whose socket they can open.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor_limit.hpp"
#include "base/places.hpp"
#include "base/unix_address.hpp"
#include "espalier/map.hpp"
#include "espalier/sequencer.hpp"
#include "espalier/table.hpp"
#include "tests/support/child.hpp"
#include "tests/support/node_fixture.hpp"
#include "tests/support/raw_client.hpp"

namespace espalier::test {
namespace {

constexpr uid_t kNobodyUid = 65534;

/// The result of a call, as one word.
template <class T>
std::string word(const T& result) {
  return result ? "done" : std::string(name(result.error().code));
}

/// Does all that takes another role, and what does not.
std::string try_all(const std::string& address) {
  auto store = Store::connect(address);
  if (!store) return "connect: " + message(store.error());
  std::string done;
  const auto note = [&done](std::string_view what, const std::string& came) {
    done += std::string(what) + ": " + came + "\n";
  };
  auto map = store->open_map("default");
  note("open", word(map));
  if (!map) return done;
  note("put", word(map->put("k", "of another user")));
  note("get", word(map->get("k")));
  note("snapshot", word(map->snapshot()));
  note("list", word(store->sequencers()));
  note("create map", word(store->create_map("mine")));
  note("drop map", word(store->drop_map("default")));
  note("create sequencer", word(store->create_sequencer("numbers")));
  return done;
}

class NodeAccess : public NodeFixture {
 protected:
  // Others must be able to reach the socket at all.
  void open_to_others() {
    config_.node.socket_mode = 0666;
    ASSERT_EQ(::chmod(folder_.path().c_str(), 0711), 0);
    start();
  }
};

TEST_F(NodeAccess, ItsOwnUserMayDoAll) {
  open_to_others();
  EXPECT_EQ(try_all("unix:" + socket()),
            "open: done\nput: done\nget: done\nsnapshot: done\nlist: done\ncreate map: done\n"
            "drop map: done\ncreate sequencer: done\n");
}

// Only root can become another user; for other users the test above must suffice.
TEST_F(NodeAccess, OtherUsersMayReadAndWriteAndNotMakeOrDrop) {
  Child other([](Line& line) {
    std::string address;
    if (!line.receive(address)) return 1;
    if (::geteuid() == 0 && ::seteuid(kNobodyUid) != 0) return 2;
    return line.send(try_all(address)) ? 0 : 3;
  });
  open_to_others();
  ASSERT_TRUE(other.line().send("unix:" + socket()));
  std::string done;
  ASSERT_TRUE(other.line().receive(done));
  EXPECT_EQ(other.wait(), 0);
  const std::string refused = ::geteuid() == 0 ? "not_permitted" : "done";
  EXPECT_EQ(done, "open: done\nput: done\nget: done\nsnapshot: done\nlist: done\ncreate map: " +
                      refused + "\ndrop map: " + refused + "\ncreate sequencer: " + refused + "\n");
  EXPECT_EQ(connect().open_map("default").has_value(), ::geteuid() == 0);
}

/// Connects as often as possible and sends nothing. Returns the sockets that were not refused
/// immediately.
std::vector<memory::Descriptor> connect_silently(const std::string& path, std::size_t times) {
  std::vector<memory::Descriptor> sockets;
  const auto address = base::UnixAddress::file(path);
  for (std::size_t i = 0; i < times; ++i) {
    memory::Descriptor client(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (::connect(client.number(), address->get(), address->bytes()) != 0) break;
    sockets.push_back(std::move(client));
  }
  return sockets;
}

// One user gets a quarter of the places for pending connections, so that other users, and the
// node's own, are accepted immediately.
TEST_F(NodeAccess, OneUserLeavesPlacesForOthersAtTheSocket) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  base::raise_descriptor_limit();
  Child greedy([](Line& line) {
    std::string path;
    if (!line.receive(path)) return 1;
    if (::seteuid(kNobodyUid) != 0) return 2;
    const auto sockets = connect_silently(path, node::Listener::kPendingMax + 100);
    if (!line.send(std::to_string(sockets.size()))) return 3;
    return line.receive(path) ? 0 : 4;
  });
  Child other([](Line& line) {
    std::string address;
    if (!line.receive(address)) return 1;
    if (::seteuid(kNobodyUid - 1) != 0) return 2;
    const auto store = Store::connect(address);
    return line.send(store ? "done" : message(store.error())) ? 0 : 3;
  });
  open_to_others();
  ASSERT_TRUE(greedy.line().send(socket()));
  std::string answer;
  ASSERT_TRUE(greedy.line().receive(answer));
  ASSERT_EQ(answer, std::to_string(node::Listener::kPendingMax + 100));
  while (node_->connections_refused() == 0) std::this_thread::yield();
  EXPECT_LE(node_->connections_pending(), node::Listener::kUserPendingMax);
  EXPECT_TRUE(Store::connect("unix:" + socket()));
  ASSERT_TRUE(other.line().send("unix:" + socket()));
  ASSERT_TRUE(other.line().receive(answer));
  EXPECT_EQ(answer, "done");
  EXPECT_EQ(other.wait(), 0);
  ASSERT_TRUE(greedy.line().send("enough"));
  EXPECT_EQ(greedy.wait(), 0);
}

// One user gets half of all places, and some are reserved for the node's own user.
TEST_F(NodeAccess, OneUserLeavesConnectionsForOthers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  const auto connect_all = [](Line& line) {
    std::string path;
    if (!line.receive(path)) return 1;
    const uid_t user = kNobodyUid - (path.front() == '1' ? 1 : 0);
    if (::seteuid(user) != 0) return 2;
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 100; ++i) {
      if (auto client = RawClient::open(path.substr(1), {64, 64, 1})) {
        clients.push_back(std::move(*client));
      }
    }
    if (!line.send(std::to_string(clients.size()))) return 3;
    return line.receive(path) ? 0 : 4;
  };
  Child first(connect_all);
  Child second(connect_all);
  config_.clients.connections_max = 32;
  open_to_others();
  std::string answer;
  ASSERT_TRUE(first.line().send("0" + socket()) && first.line().receive(answer));
  EXPECT_EQ(answer, "16");
  ASSERT_TRUE(second.line().send("1" + socket()) && second.line().receive(answer));
  EXPECT_EQ(answer, "14");
  const auto own = RawClient::open(socket(), {64, 64, 1});
  EXPECT_TRUE(own) << "two are kept for it";
  ASSERT_TRUE(first.line().send("enough") && second.line().send("enough"));
  EXPECT_EQ(first.wait() + second.wait(), 0);
}

TEST_F(NodeAccess, ANarrowerSocketModeEndsTheSessionsThatItExcludes) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  std::mutex mutex;
  std::vector<std::string> ended;
  options_.audit = [&](const offload::AuditRecord& record) {
    const std::lock_guard lock(mutex);
    if (record.act == "end_session") ended.push_back(record.name);
  };
  Child other([](Line& line) {
    std::string path;
    if (!line.receive(path)) return 1;
    if (::seteuid(kNobodyUid) != 0) return 2;
    const auto client = RawClient::open(path, {64, 64, 1});
    if (!client || !line.send("connected")) return 3;
    char byte = 0;
    const ssize_t got = ::recv((*client)->socket(), &byte, 1, 0);  // until it is ended
    return line.send(got <= 0 || byte != 0 ? "ended" : "?") ? 0 : 4;
  });
  open_to_others();
  Store own = connect();
  auto map = own.open_map("default");
  ASSERT_TRUE(map && map->put("k", "v"));
  std::string answer;
  ASSERT_TRUE(other.line().send(socket()) && other.line().receive(answer));
  ASSERT_EQ(answer, "connected");
  node::Config wider = config_;
  wider.node.socket_mode = 0662;  // for others as before
  EXPECT_TRUE(node_->change(wider).empty());
  node::Config narrower = config_;
  narrower.node.socket_mode = 0600;  // it came by the group of the file
  EXPECT_TRUE(node_->change(narrower).empty());
  ASSERT_TRUE(other.line().receive(answer));
  EXPECT_EQ(answer, "ended");
  EXPECT_EQ(other.wait(), 0);
  EXPECT_TRUE(map->get("k")) << "its own user goes on";
  while (node_->connections() != 1) std::this_thread::yield();
  node_.reset();  // hands over what it has for the audit
  EXPECT_EQ(ended, std::vector<std::string>{"user " + std::to_string(kNobodyUid)});
}

TEST_F(NodeAccess, TheRefusalNamesTheRole) {
  EXPECT_THAT(message({Code::not_permitted, 0, 3}), testing::HasSubstr("takes the role admin"));
  EXPECT_THAT(message({Code::not_permitted, 0, 0}), testing::HasSubstr("names begin otherwise"));
  EXPECT_THAT(message({Code::not_permitted, 0, 9}), testing::HasSubstr("takes the role replica"));
  EXPECT_THAT(message({Code::not_permitted, 0, 10}), testing::HasSubstr("names begin otherwise"));
}

// Each with the calling process, and the reason of the refusal.
TEST_F(NodeAccess, RefusalsAreInTheAuditLog) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<offload::AuditRecord> records;
  options_.audit = [&](const offload::AuditRecord& record) {
    const std::lock_guard lock(mutex);
    records.push_back(record);
    changed.notify_all();
  };
  config_.clients.connections_max = 1;
  start();
  const auto first = RawClient::open(socket(), {64, 64, 1});
  ASSERT_TRUE(first);
  while (node_->connections() != 1) std::this_thread::yield();
  EXPECT_FALSE(RawClient::open(socket(), {64, 64, 1}));
  const auto address = base::UnixAddress::file(socket());
  ASSERT_TRUE(address);
  const memory::Descriptor client(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(client.number(), address->get(), address->bytes()), 0);
  ASSERT_EQ(::send(client.number(), "hello", 5, MSG_NOSIGNAL), 5);
  const std::string me =
      "unix process " + std::to_string(::getpid()) + " of user " + std::to_string(::geteuid());
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return records.size() == 2; });
  for (const offload::AuditRecord& record : records) {
    EXPECT_TRUE(record.refusal);
    EXPECT_EQ(record.act, "connect");
    EXPECT_EQ(record.address, me);
  }
  EXPECT_EQ(records[0].outcome, base::full_error(base::Places::connections, 1));
  EXPECT_EQ(records[1].outcome.code, Code::invalid_argument);
  lock.unlock();
  node_.reset();  // which has records for us until then
}

// However often one user is refused, refusals of others are in the audit log.
TEST_F(NodeAccess, RefusalsAtTheSocketAreLimitedForEachUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  std::mutex mutex;
  std::map<std::string, std::size_t> refusals;
  options_.audit = [&](const offload::AuditRecord& record) {
    const std::lock_guard lock(mutex);
    if (!record.act.empty()) ++refusals[record.address.substr(record.address.rfind(' ') + 1)];
  };
  Child other([](Line& line) {
    std::string path;
    if (!line.receive(path)) return 1;
    if (::seteuid(kNobodyUid) != 0) return 2;
    for (const auto& client : connect_silently(path, offload::AuditLog::kBurst + 10)) {
      if (::send(client.number(), "hello", 5, MSG_NOSIGNAL) != 5) return 3;
      char answer[256];
      if (::recv(client.number(), answer, sizeof answer, 0) <= 0) return 4;
    }
    return line.send("refused") ? 0 : 5;
  });
  open_to_others();
  std::string answer;
  ASSERT_TRUE(other.line().send(socket()) && other.line().receive(answer));
  EXPECT_EQ(other.wait(), 0);
  for (const auto& client : connect_silently(socket(), 3)) {
    ASSERT_EQ(::send(client.number(), "hello", 5, MSG_NOSIGNAL), 5);
    char refusal[256];
    ASSERT_GT(::recv(client.number(), refusal, sizeof refusal, 0), 0);
  }
  node_.reset();  // hands over what it has for the audit
  EXPECT_GE(refusals[std::to_string(kNobodyUid)], offload::AuditLog::kBurst);
  EXPECT_LT(refusals[std::to_string(kNobodyUid)], offload::AuditLog::kBurst + 10);
  EXPECT_EQ(refusals["0"], 3u);
}

// A limit that no setting changes is not attributed to one.
TEST_F(NodeAccess, SaysWhatIsFullAndWhatToDo) {
  std::mutex mutex;
  std::vector<Error> refusals;
  options_.audit = [&](const offload::AuditRecord& record) {
    const std::lock_guard lock(mutex);
    refusals.push_back(record.outcome);
  };
  base::raise_descriptor_limit();
  start();
  Store store = connect();
  auto map = store.open_map("default");
  ASSERT_TRUE(map);
  std::vector<Snapshot> snapshots;
  Error error{};
  while (error.code == Code::invalid) {
    auto snapshot = map->snapshot();
    if (snapshot)
      snapshots.push_back(std::move(*snapshot));
    else
      error = snapshot.error();
  }
  EXPECT_EQ(error, base::full_error(base::Places::principal_snapshots, 1024));
  EXPECT_THAT(message(error), testing::HasSubstr("1024 snapshots, by all its connections"));
  const std::uint32_t most = 2 * node::Listener::kUserPendingMax;  // of the node's own user
  const auto silent = connect_silently(socket(), most + 1);
  ASSERT_EQ(silent.size(), most + 1);
  while (node_->connections_refused() == 0) std::this_thread::yield();
  node_.reset();  // hands over what it has for the audit
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0], base::full_error(base::Places::user_hellos, most));
}

}  // namespace
}  // namespace espalier::test

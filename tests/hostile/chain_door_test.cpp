// SPDX-License-Identifier: Apache-2.0
// Access to the listener for members of a chain: which clients may connect, in which role.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>

#include "base/bytes.hpp"
#include "base/temporary_folder.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "crypto/credential_file.hpp"
#include "node/chain_calls.hpp"
#include "node/chain_door.hpp"
#include "tests/support/node_config.hpp"
#include "tests/support/role_matrix.hpp"

namespace espalier::test {
namespace {

class CountingListener final : public node::ChainListener {
 public:
  Result<chain::Message> hear(const chain::Message& message, std::string_view) override {
    ++heard;
    return message;
  }
  std::string status() override { return "role head"; }
  Result<chain_calls::Piece> fetch(const chain_calls::Wanted&, std::string&) override {
    ++heard;
    return chain_calls::Piece{};
  }
  std::atomic<int> heard{0};
};

class ChainDoorRoles : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string all = line("reader", "read", 'a') + line("writer", "write", 'b') +
                            line("admin", "admin", 'c') + line("peer", "peer", 'd') +
                            line("member", "replica", 'e') + line("some", "replica", 'f', "a/*");
    ASSERT_TRUE(secrets_.load(write("secrets", all)));
    auto opened =
        node::ChainDoor::open(node_config(folder_), "roce://127.0.0.1:0/1", &secrets_, listener_);
    ASSERT_TRUE(opened) << message(opened.error());
    door_ = std::move(*opened);
  }

  /// The result of a request by a client with that line of secrets.
  Error ask(const std::string& name, const std::string& role, char digit, wire::OffloadId call,
            const std::string& payload) {
    auto secret = ClientSecret::read_file(write(name, line(name, role, digit)));
    EXPECT_TRUE(secret);
    const auto rings = roles::open_rings(door_->address(), *secret);
    if (!rings) return rings.error();
    client::RemoteRequests requests(**rings, 1);
    const auto reply = requests.call({.offload = call, .payload = payload});
    return reply ? Error{} : reply.error();
  }

  static std::string line(const std::string& name, const std::string& role, char digit,
                          const std::string& names = "") {
    // A secret of one digit alone was not drawn.
    return name + " " + role + " " + std::string(63, digit) + "1 " + names + "\n";
  }
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), 0600), 0);
    return path;
  }

  const base::TemporaryFolder folder_;
  CountingListener listener_;
  offload::Secrets secrets_;
  std::unique_ptr<node::ChainDoor> door_;
};

TEST_F(ChainDoorRoles, OnlyMembersAreHeard) {
  const std::string said(base::bytes_of(chain::Message{}));
  const std::string wanted(base::bytes_of(chain_calls::Wanted{}));
  constexpr Error kTakesReplica{Code::not_permitted, 0, 9};
  struct Who {
    const char* name;
    const char* role;
    char digit;
    Error comes;
  };
  const Who all[] = {{"reader", "read", 'a', kTakesReplica},
                     {"writer", "write", 'b', kTakesReplica},
                     {"admin", "admin", 'c', kTakesReplica},
                     {"peer", "peer", 'd', kTakesReplica},
                     {"some", "replica", 'f', {Code::not_permitted, 0, 0}},  // of some names alone
                     {"nobody", "replica", '9', {Code::not_permitted, 0, 5}}};
  for (const Who& who : all) {
    SCOPED_TRACE(who.name);
    EXPECT_EQ(ask(who.name, who.role, who.digit, chain_calls::kSay, said), who.comes);
    EXPECT_EQ(ask(who.name, who.role, who.digit, chain_calls::kFetch, wanted), who.comes);
  }
  EXPECT_EQ(listener_.heard, 0);
  EXPECT_EQ(ask("member", "replica", 'e', chain_calls::kSay, said), Error{});
  EXPECT_EQ(ask("member", "replica", 'e', chain_calls::kFetch, wanted), Error{});
  EXPECT_EQ(listener_.heard, 2);
  // Any known client may ask for the chain's status, members included.
  EXPECT_EQ(ask("member", "replica", 'e', chain_calls::kStatus, ""), Error{});
  EXPECT_EQ(ask("reader", "read", 'a', chain_calls::kStatus, ""), Error{});
  EXPECT_EQ(ask("nobody", "read", '9', chain_calls::kStatus, ""),
            (Error{Code::not_permitted, 0, 5}));
}

}  // namespace
}  // namespace espalier::test

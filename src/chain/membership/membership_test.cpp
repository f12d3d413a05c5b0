// SPDX-License-Identifier: Apache-2.0
// The text of a view, and a chain that is kept in a file.
#include "chain/membership/membership.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

#include "base/temporary_folder.hpp"
#include "chain/membership/file_membership.hpp"

namespace espalier::chain {
namespace {

View small_view(std::uint64_t epoch = 1) {
  return {.chain = 12,
          .epoch = epoch,
          .fence_ms = 400,
          .members = {{1, "a", "shm:/tmp/a"}, {2, "b", "roce://10.0.0.1:4791/b"}}};
}

TEST(ChainView, ItsTextIsReadAsItWasWritten) {
  const std::string text = print(small_view());
  EXPECT_EQ(text,
            "espalier-chain 1\nchain 12\nepoch 1\nfence_ms 400\n"
            "member 1 a shm:/tmp/a\nmember 2 b roce://10.0.0.1:4791/b\n");
  const auto read = parse_view(text);
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(*read, small_view());
}

TEST(ChainView, EachCutOfItsTextAndEachOtherByteIsReadOrRefused) {
  const std::string text = print(small_view());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto cut = parse_view(text.substr(0, i));
    if (cut) {
      EXPECT_EQ(mistake_in(*cut), std::nullopt);
    }
    std::string other = text;
    other[i] = static_cast<char>(other[i] ^ 0x40);
    const auto changed = parse_view(other);
    if (changed) {
      EXPECT_EQ(mistake_in(*changed), std::nullopt);
    }
  }
}

TEST(ChainView, WhatIsWrongIsSaid) {
  const std::string begin = "espalier-chain 1\nchain 12\nepoch 1\nfence_ms 400\n";
  const auto mistake = [](const std::string& text) {
    const auto read = parse_view(text);
    return read ? std::string() : read.error();
  };
  EXPECT_EQ(mistake(""), "it names no chain");
  EXPECT_EQ(mistake("espalier-chain 2\n"), "line 1 is none of a chain");
  EXPECT_EQ(mistake(begin), "it has no member");
  EXPECT_EQ(mistake(begin + "member x\n"), "line 5 is none of a chain");
  EXPECT_EQ(mistake(begin + "member 0 a b\n"), "a member's number is from 1 on");
  EXPECT_EQ(mistake(begin + "member 1 a\n"), "the address of member 'a' is none");
  EXPECT_EQ(mistake(begin + "member 1 a x\nmember 1 b x\n"), "member 'b' is in it twice");
  EXPECT_EQ(mistake("espalier-chain 1\nchain 12\nepoch 1\nfence_ms 4\n"),
            "fence_ms is from 100 to 60000");
}

TEST(ChainView, AMemberMayHaveAnAddressForClients) {
  View view = small_view();
  view.members[1].clients = "roce://10.0.0.1/1";
  const std::string text = print(view);
  EXPECT_NE(text.find("\nmember 1 a shm:/tmp/a\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" roce://10.0.0.1:4791/b roce://10.0.0.1/1\n"), std::string::npos) << text;
  EXPECT_EQ(parse_view(text), view);
  EXPECT_EQ(view.again().without({1}).members[0].clients, "roce://10.0.0.1/1");
  const View joining = view.with_joining("c", "shm:/tmp/c", "unix:/tmp/c");
  EXPECT_EQ(parse_view(print(joining)), joining);
  EXPECT_EQ(joining.with_joined().members[2].clients, "unix:/tmp/c");
  view.members[1].clients = "two words";
  EXPECT_EQ(mistake_in(view), "the address of member 'b' for clients is none");
  view.members[1].clients = std::string(513, 'x');
  EXPECT_NE(mistake_in(view), std::nullopt);
}

TEST(ChainView, TheNextOneIsWithoutSome) {
  const View next = small_view(4).without({1});
  EXPECT_EQ(next.epoch, 5u);
  ASSERT_EQ(next.members.size(), 1u);
  EXPECT_EQ(next.members[0].name, "b");
}

TEST(ChainView, WhoComesAgainHasANewNumber) {
  const View left = small_view(4).without({2});
  EXPECT_EQ(left.given, 2u);
  const View joining = left.with_joining("b", "shm:/tmp/b");
  EXPECT_EQ(joining.epoch, 6u);
  EXPECT_EQ(joining.joining, (MemberEntry{3, "b", "shm:/tmp/b"}));
  EXPECT_EQ(joining.find(3u), nullptr);
  EXPECT_EQ(mistake_in(joining), std::nullopt);
  EXPECT_EQ(parse_view(print(joining)), joining);
  EXPECT_EQ(joining.with_joining("b", "shm:/tmp/b").joining->number, 4u);
  EXPECT_EQ(joining.without({3}).members, left.members);
  EXPECT_EQ(joining.without({3}).given, 3u);
  const View joined = joining.with_joined();
  EXPECT_EQ(joined.joining, std::nullopt);
  ASSERT_EQ(joined.members.size(), 2u);
  EXPECT_EQ(joined.members[1], *joining.joining);
  EXPECT_EQ(parse_view(print(joined)), joined);
}

TEST(ChainView, WhoJoinsIsRefusedWhereItIsAMemberOrThereIsNoRoom) {
  View view = small_view().with_joining("a", "shm:/tmp/a");
  EXPECT_EQ(mistake_in(view), "member 'a' is in it twice");
  view = small_view().with_joining("c d", "shm:/tmp/c");
  EXPECT_EQ(mistake_in(view), "a member's name is 1 to 64 letters");
  view = small_view().with_joining("c", "shm:/tmp/c");
  EXPECT_EQ(print(view).find("given"), std::string::npos);
  EXPECT_FALSE(parse_view(print(view) + "joining 4 d shm:/tmp/d\n"));
  EXPECT_FALSE(parse_view(print(view) + "given x\n"));
  view.whole = true;
  EXPECT_EQ(parse_view(print(view)), view);
  for (std::uint32_t i = 10; view.members.size() < kMembersMax; ++i) {
    view.members.push_back({i, "m" + std::to_string(i), "shm:/m"});
  }
  EXPECT_EQ(mistake_in(view), "it has more than 8 members");
}

TEST(FileMembership, AViewGoesOnFromTheOneBefore) {
  const base::TemporaryFolder folder;
  FileMembership membership((folder / "chain").string());
  EXPECT_EQ(membership.read().value(), std::nullopt);
  EXPECT_EQ(membership.replace(small_view(2)), false);  // there is none yet
  EXPECT_EQ(membership.replace(small_view(1)), true);
  EXPECT_EQ(membership.replace(small_view(1)), false);
  EXPECT_EQ(membership.replace(small_view(3)), false);
  EXPECT_EQ(membership.replace(small_view(2)), true);
  View other = small_view(3);
  other.chain = 13;
  EXPECT_EQ(membership.replace(other), false);
  EXPECT_EQ(membership.read().value(), small_view(2));
}

TEST(FileMembership, AFileThatIsNoChainIsRefused) {
  const base::TemporaryFolder folder;
  const std::string path = (folder / "chain").string();
  std::ofstream(path) << "nothing\n";
  FileMembership membership(path);
  ASSERT_FALSE(membership.read());
  EXPECT_EQ(membership.read().error(), "'" + path + "' has no chain: line 1 is none of a chain");
  EXPECT_FALSE(membership.replace(small_view(1)));
}

TEST(FileMembershipConcurrency, OfThoseWhoProposeOneWins) {
  const base::TemporaryFolder folder;
  const std::string path = (folder / "chain").string();
  ASSERT_EQ(FileMembership(path).replace(small_view(1)), true);
  constexpr std::uint64_t kEpochs = 20;
  std::vector<std::atomic<int>> won(kEpochs + 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      FileMembership membership(path);
      for (std::uint64_t epoch = 2; epoch <= kEpochs; ++epoch) {
        const auto taken = membership.replace(small_view(epoch));
        if (taken && *taken) ++won[epoch];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(FileMembership(path).read().value()->epoch, kEpochs);
  for (std::uint64_t epoch = 2; epoch <= kEpochs; ++epoch) EXPECT_EQ(won[epoch], 1);
}

TEST(OpenMembership, TakesPathsAndPlacesInEtcd) {
  EXPECT_TRUE(open_membership("/tmp/chain"));
  EXPECT_TRUE(open_membership("etcd://127.0.0.1:2379/chain"));
  EXPECT_TRUE(open_membership("etcd://one:2379,[::1]:2379/espalier/kv"));
  for (const char* const wrong :
       {"", "http://127.0.0.1:2379/chain", "etcd://127.0.0.1:2379", "etcd://127.0.0.1:2379/",
        "etcd:///chain", "etcd://one:port/chain", "etcd://one/chain", "etcd://a@b:1/chain",
        "etcd://one:1/a b", "etcd://one:1,,two:1/chain"}) {
    EXPECT_FALSE(open_membership(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace espalier::chain

// SPDX-License-Identifier: Apache-2.0
// Gets by datagrams against the map, and datagrams that are replayed, forged, from elsewhere, of
// other sessions and of none: what is sent for them, and to whom.
#include "kinds/map/offload/datagram_reads.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "engine/services.hpp"
#include "engine/serving_gate.hpp"
#include "engine/tests/testing/datagram_client.hpp"
#include "kinds/map/walk/next_step.hpp"

namespace espalier::offload {
namespace {

using wire::DatagramStatus;

class DatagramReadsOf : public ::testing::Test {
 protected:
  DatagramNode node_;
};

/// A session that has proved its address.
class Proved : public DatagramReadsOf {
 protected:
  Proved() { EXPECT_TRUE(client_.prove(kHere)); }
  /// Whether nothing is sent, and the datagram is counted as dropped.
  bool is_dropped(std::string_view bytes, const DatagramSource& from = kHere) {
    const std::uint64_t before = node_.dropped();
    return node_.take(bytes, from).empty() && node_.dropped() == before + 1;
  }
  DatagramClient client_{node_};
};

TEST_F(DatagramReadsOf, UnprovedAddressesAreNotAnswered) {
  EXPECT_EQ(reads_from_unproved_addresses(), "");
}

TEST_F(Proved, GetsAreThoseOfTheMap) {
  base::Random random(base::seed_from_environment(4501));
  std::map<std::string, std::string> model;
  for (int i = 0; i < 1000; ++i) {
    const std::string key = "key " + std::to_string(random.below(300));
    if (random.below(2) == 0) {
      model[key] = std::to_string(i);
      node_.put(key, model[key]);
    }
    // Hints are anything: they are not under the tag.
    const std::uint64_t hint = random.below(2) == 0 ? 0 : random();
    const auto status = client_.ask(client_.get(key, hint), kHere);
    const auto known = model.find(key);
    ASSERT_EQ(status, known == model.end() ? DatagramStatus::absent : DatagramStatus::found);
    ASSERT_EQ(client_.value, known == model.end() ? "" : known->second);
    ASSERT_EQ(client_.answered, client_.number);
  }
  EXPECT_EQ(node_.sessions.counts.answered, 1000u);
  EXPECT_EQ(node_.dropped(), 0u);
}

TEST_F(Proved, AHintIsTakenAsOneOfRingsIs) {
  for (int i = 0; i < 3000; ++i) node_.put("key " + std::to_string(10'000 + i), "v");
  tree::MapCore& map = node_.node.core();
  ASSERT_GT(map.height.load(), 1u);
  tree::Cursor cursor;
  cursor.key.assign("key 11000");
  cursor.read_version = tree::kNewest;
  const std::uint64_t leaf = tree::find_leaf(map, cursor, {}).bits;
  const auto admitted = [&] { return map.hints.admitted.sum(); };
  const std::uint64_t before = admitted();
  // A switch writes it after the client has signed.
  std::string bytes = client_.get("key 11000");
  std::memcpy(bytes.data() + offsetof(wire::DatagramRequest, hint), &leaf, sizeof leaf);
  EXPECT_EQ(client_.ask(bytes, kHere), DatagramStatus::found);
  EXPECT_EQ(admitted(), before + 1);
  // The same leaf for a key that it has not: it does not answer.
  EXPECT_EQ(client_.ask(client_.get("key 10000", leaf), kHere), DatagramStatus::found);
}

TEST_F(Proved, ALongValueIsForTheRings) {
  node_.put("fits", std::string(wire::kDatagramValueBytesMax, 'f'));
  node_.put("long", std::string(wire::kDatagramValueBytesMax + 1, 'l'));
  EXPECT_EQ(client_.ask(client_.get("fits"), kHere), DatagramStatus::found);
  EXPECT_EQ(client_.value, std::string(wire::kDatagramValueBytesMax, 'f'));
  EXPECT_EQ(client_.ask(client_.get("long"), kHere), DatagramStatus::by_ring);
  EXPECT_EQ(node_.sessions.counts.by_ring, 1u);
}

TEST_F(Proved, AKeyOrAMapThatCannotBeIsForTheRings) {
  EXPECT_EQ(client_.ask(client_.get(std::string(1000, 'k')), kHere), DatagramStatus::by_ring);
  const auto of_map = [&](std::uint32_t map) {
    return client_.made(wire::DatagramKind::get, ++client_.number, "a", map);
  };
  EXPECT_EQ(client_.ask(of_map(0), kHere), DatagramStatus::by_ring);
  EXPECT_EQ(client_.ask(of_map(77), kHere), DatagramStatus::by_ring);
  const auto plain = tree::create_map(node_.node.store(), "plain", {.versions = false});
  node_.put("a", "1", (*plain)->id);
  EXPECT_EQ(client_.ask(of_map((*plain)->id), kHere), DatagramStatus::by_ring);
}

TEST_F(Proved, ADroppedMapIsForTheRings) {
  node_.put("a", "1");
  EXPECT_EQ(client_.ask(client_.get("a"), kHere), DatagramStatus::found);
  ASSERT_TRUE(node_.node.catalog().drop<tree::MapCore>("m"));
  EXPECT_EQ(client_.ask(client_.get("a"), kHere), DatagramStatus::by_ring);
  node_.reads.maintain();
  EXPECT_EQ(client_.ask(client_.get("a"), kHere), DatagramStatus::by_ring);
}

TEST_F(DatagramReadsOf, RolesAndNamesAreLookedAt) {
  node_.put("a", "1");
  const auto ask = [&](Access access) {
    DatagramClient client(node_, std::move(access));
    EXPECT_TRUE(client.prove(kHere));
    return client.ask(client.get("a"), kHere);
  };
  EXPECT_EQ(ask({"reader", Right::read}), DatagramStatus::found);
  EXPECT_EQ(ask({"reader of m", Right::read, "m"}), DatagramStatus::found);
  EXPECT_EQ(ask({"nobody", Right::none}), DatagramStatus::by_ring);
  EXPECT_EQ(ask({"reader of others", Right::read, "other"}), DatagramStatus::by_ring);
  EXPECT_EQ(node_.node.services().denied, 2u);
}

// Whoever is refused need not ask by rings, where that would be kept.
TEST_F(DatagramReadsOf, RefusalsAreKeptForThoseWhoAudit) {
  AuditLog& audit = node_.node.services().audit;
  audit.open();
  DatagramClient client(node_, {"shop", Right::read, "shop/"});
  ASSERT_TRUE(client.prove(kHere));
  EXPECT_EQ(client.ask(client.get("a"), kHere), DatagramStatus::by_ring);
  const auto of_none = client.made(wire::DatagramKind::get, ++client.number, "a", 77);
  EXPECT_EQ(client.ask(of_none, kHere), DatagramStatus::by_ring);
  const auto first = audit.take();
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->refusal);
  EXPECT_EQ(first->act, "get");
  EXPECT_EQ(first->name, "shop");
  EXPECT_EQ(first->role, Right::read);
  EXPECT_EQ(first->address, "datagram 10.0.0.1:5000");
  EXPECT_EQ(first->object, "m");
  EXPECT_EQ(first->outcome, (Error{Code::not_permitted, 0, 0}));
  const auto second = audit.take();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->object, "#77");
  EXPECT_FALSE(audit.take());
  // As of a request by rings: so many at once, and others' all the same.
  for (std::uint64_t i = 0; i < 2 * AuditLog::kBurst; ++i) {
    static_cast<void>(client.ask(client.get("a"), kHere));
  }
  DatagramClient other(node_, {"nobody", Right::none}, 2);
  ASSERT_TRUE(other.prove(kHere));
  EXPECT_EQ(other.ask(other.get("a"), kHere), DatagramStatus::by_ring);
  std::uint64_t kept = 0;
  std::string last;
  while (const auto record = audit.take()) {
    last = record->name;
    ++kept;
  }
  EXPECT_LE(kept, AuditLog::kBurst);
  EXPECT_EQ(last, "nobody");
}

TEST_F(Proved, ARepeatedGetIsAnsweredAgainButNotForEver) {
  node_.put("a", "1");
  const std::string get = client_.get("a");
  for (int i = 0; i < TakenNumbers::kRepeatsMax; ++i) {
    EXPECT_EQ(client_.ask(get, kHere), DatagramStatus::found) << i;
  }
  EXPECT_TRUE(is_dropped(get));
  // Nor once the numbers have gone on.
  const std::string old = client_.get("a");
  for (std::uint64_t i = 0; i < TakenNumbers::kSeenNumbers; ++i) {
    EXPECT_EQ(client_.ask(client_.get("a"), kHere), DatagramStatus::found) << i;
  }
  EXPECT_TRUE(is_dropped(old));
}

TEST_F(Proved, GetsInAnyOrderAreAnswered) {
  std::vector<std::pair<std::string, std::string>> gets;
  for (int i = 0; i < 60; ++i) {
    const std::string key = std::to_string(i);
    node_.put(key, key);
    gets.emplace_back(client_.get(key), key);
  }
  base::Random random(base::seed_from_environment(4502));
  for (std::size_t left = gets.size(); left != 0; --left) {
    std::swap(gets[random.below(left)], gets[left - 1]);
    EXPECT_EQ(client_.ask(gets[left - 1].first, kHere), DatagramStatus::found);
    EXPECT_EQ(client_.value, gets[left - 1].second);
  }
}

TEST_F(Proved, NoBitOfAGetCanBeForgedButTheHint) {
  node_.put("a", "1");
  for (std::size_t at = 0; at < wire::kDatagramRequestBytes + 1; ++at) {
    std::string get = client_.get("a");
    ASSERT_EQ(get.size(), wire::kDatagramRequestBytes + 1);
    get[at] = static_cast<char>(get[at] ^ 0x20);
    const bool hint =
        at >= offsetof(wire::DatagramRequest, hint) && at < offsetof(wire::DatagramRequest, tag);
    if (hint) {
      EXPECT_EQ(client_.ask(get, kHere), DatagramStatus::found) << at;
    } else {
      EXPECT_TRUE(is_dropped(get)) << at;
    }
  }
}

TEST_F(Proved, TooShortAndTooLong) {
  const std::string get = client_.get("a");
  for (std::size_t bytes = 0; bytes < get.size(); ++bytes) {
    EXPECT_TRUE(is_dropped(get.substr(0, bytes))) << bytes;
  }
  EXPECT_TRUE(is_dropped(get + "x"));
  EXPECT_TRUE(is_dropped(get + std::string(wire::kDatagramBytesMax, 'x')));
}

TEST_F(Proved, OfAnotherSessionByTheKeyOfThisOne) {
  DatagramClient other(node_);
  ASSERT_TRUE(other.prove(kHere));
  const std::uint64_t own = std::exchange(client_.session, other.session);
  EXPECT_TRUE(is_dropped(client_.get("a")));
  client_.session = own;
  // The address that one has proved is not the other's.
  DatagramClient third(node_);
  EXPECT_TRUE(is_dropped(third.get("a")));
}

TEST_F(Proved, OfASessionThatIsOver) {
  const std::string get = client_.get("a");
  const std::string hello = client_.hello();
  const std::uint64_t before = client_.session;
  client_.open();  // one in its place
  ASSERT_NE(client_.session, before);
  EXPECT_EQ(node_.sessions.size(), 1u);
  EXPECT_TRUE(is_dropped(get));
  EXPECT_TRUE(is_dropped(hello));
  const std::string next = client_.hello();
  client_.end();
  ASSERT_TRUE(node_.node.run_until([&] { return node_.sessions.size() == 0; }));
  EXPECT_TRUE(is_dropped(next));
}

TEST_F(Proved, AHelloIsGoodOnceAndItsChallengeIsNoLonger) {
  const std::string hello = client_.hello();
  const auto sent = node_.take(hello, kElsewhere);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_LE(sent.front().bytes.size(), hello.size());
  EXPECT_TRUE(is_dropped(hello, kElsewhere));
  EXPECT_TRUE(is_dropped(hello));
  // An older one is not good either: it may have been kept back.
  const std::string older = client_.hello();
  EXPECT_EQ(node_.take(client_.hello(), kHere).size(), 1u);
  EXPECT_TRUE(is_dropped(older, kElsewhere));
}

TEST_F(Proved, AChallengeIsGoodForItsAddressAlone) {
  const auto challenge = client_.reply_in(node_.take(client_.hello(), kElsewhere), kElsewhere);
  ASSERT_TRUE(challenge);
  const std::string said(challenge->payload);
  EXPECT_TRUE(is_dropped(client_.proof(said), kHere));
  DatagramSource port = kElsewhere;
  ++port.udp_port;
  EXPECT_TRUE(is_dropped(client_.proof(said), port));
  DatagramClient other(node_);
  EXPECT_TRUE(is_dropped(other.proof(said), kElsewhere));
  EXPECT_TRUE(is_dropped(client_.proof(std::string(wire::kChallengeBytes, 'x')), kElsewhere));
}

TEST_F(Proved, AReplayedProofDoesNotBringAnAddressBack) {
  const auto challenge = client_.reply_in(node_.take(client_.hello(), kElsewhere), kElsewhere);
  ASSERT_TRUE(challenge);
  const std::string proof = client_.proof(std::string(challenge->payload));
  EXPECT_EQ(node_.take(proof, kElsewhere).size(), 1u);
  ASSERT_TRUE(client_.prove(kHere));
  EXPECT_TRUE(is_dropped(proof, kElsewhere));
  EXPECT_EQ(client_.ask(client_.get("a"), kHere), DatagramStatus::absent);
}

TEST_F(Proved, MoreThanItTakesAtATimeAreDropped) {
  const std::uint64_t before = node_.dropped();
  for (std::size_t i = 0; i < DatagramReads::kGets + 3; ++i) {
    const std::string get = client_.get("a");
    node_.reads.take(std::as_bytes(std::span(get)), kHere, node_.now_ns);
  }
  while (node_.reads.step()) continue;
  EXPECT_EQ(node_.reads.replies().size(), DatagramReads::kGets);
  EXPECT_EQ(node_.dropped(), before + 3);
  node_.reads.forget_replies();
  EXPECT_EQ(client_.ask(client_.get("a"), kHere), DatagramStatus::absent);
}

// What a principal costs is bounded, whoever replays or makes its datagrams and however many
// sessions it has, and that of others is not touched.
TEST_F(Proved, MoreThanTheRateOfItsPrincipalAreDropped) {
  DatagramClient second(node_);
  DatagramClient other(node_, Access::everything(), 2);
  ASSERT_TRUE(second.prove(kElsewhere));
  ASSERT_TRUE(other.prove(kHere));
  node_.pace_ns = 0;
  for (int i = 0; i < 1000; ++i) {
    static_cast<void>(client_.ask(client_.get("a"), kHere));
    static_cast<void>(second.ask(second.get("a"), kElsewhere));
  }
  EXPECT_EQ(node_.sessions.counts.answered, DatagramShare::kGetsAtOnce);
  EXPECT_EQ(node_.sessions.counts.limited, 2000 - DatagramShare::kGetsAtOnce);
  EXPECT_EQ(other.ask(other.get("a"), kHere), DatagramStatus::absent);
  // One more for each interval that has passed.
  node_.pace_ns = DatagramShare::kGetIntervalNs;
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(client_.ask(client_.get("a"), kHere), DatagramStatus::absent) << i;
    EXPECT_EQ(second.ask(second.get("a"), kElsewhere), DatagramStatus::absent) << i;
  }
}

TEST_F(Proved, MoreHellosThanTheRatesOfSessionAndPrincipalAreDropped) {
  node_.pace_ns = 0;
  const auto& challenged = node_.sessions.counts.challenged;
  const std::uint64_t before = challenged;
  for (int i = 0; i < 1000; ++i) static_cast<void>(node_.take(client_.hello(), kElsewhere));
  EXPECT_LE(challenged - before, DatagramSession::kHellosAtOnce);
  for (int i = 0; i < 100; ++i) {
    client_.open();  // with a rate of its own
    for (int k = 0; k < 20; ++k) static_cast<void>(node_.take(client_.hello(), kElsewhere));
  }
  EXPECT_GT(challenged - before, DatagramSession::kHellosAtOnce);
  EXPECT_LE(challenged - before, DatagramShare::kHellosAtOnce);
  DatagramClient other(node_, Access::everything(), 2);
  EXPECT_TRUE(other.prove(kHere));
}

TEST(DatagramNumbers, AreTakenSoOftenAndNotLate) {
  TakenNumbers taken;
  EXPECT_FALSE(taken.take(0));
  EXPECT_TRUE(taken.take_new(5));
  EXPECT_FALSE(taken.take_new(5));
  EXPECT_FALSE(taken.take_new(4));
  EXPECT_TRUE(taken.take(4));
  for (int i = 1; i < TakenNumbers::kRepeatsMax; ++i) EXPECT_TRUE(taken.take(5));
  EXPECT_FALSE(taken.take(5));
  EXPECT_TRUE(taken.take(5 + TakenNumbers::kSeenNumbers));  // whose place was that of 5
  EXPECT_FALSE(taken.take(5));
  EXPECT_TRUE(taken.take(6));
  EXPECT_TRUE(taken.take(~std::uint64_t{0}));
  EXPECT_FALSE(taken.take(6));
}

}  // namespace
}  // namespace espalier::offload

// SPDX-License-Identifier: Apache-2.0
// Numbered transactions (docs/design/transactions.md): a repeat is not run again and gets the first
// answer, also from a store that is restored from records or a copy. The kept state is bounded;
// unknown numbers are not run.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "catalog/testing/recording_sink.hpp"
#include "engine/redo_target.hpp"
#include "engine/services.hpp"
#include "engine/store_copy.hpp"
#include "tests/durability/numbered_store.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {
namespace {

using catalog::ClientFact;
using store::NumberedClients;

/// A store that records are applied to.
struct RestoredStore {
  explicit RestoredStore(const std::vector<std::string>& records) {
    for (const std::string& record : records) {
      const auto applied = target.apply(record);
      EXPECT_TRUE(applied) << message(applied.error());
    }
  }
  NumberedStore f;
  offload::Services services{f.core, std::uint64_t{64} << 20};
  offload::RedoTarget target{services, {}};
};

std::vector<std::string> records_in(const catalog::RecordingSink& sink) {
  const auto records = sink.records();
  return {records.begin(), records.end()};
}

/// What a checkpoint of the store would have.
std::vector<std::string> copy_of(NumberedStore& f, std::size_t piece_bytes) {
  offload::Services services(f.core, std::uint64_t{64} << 20);
  offload::StoreCopy copy(services, {});
  std::vector<std::string> records;
  offload::CopyPiece piece(piece_bytes);
  for (;;) {
    const auto step = copy.next(piece);
    EXPECT_TRUE(step);
    piece.each([&](std::span<const std::byte> record) {
      records.emplace_back(reinterpret_cast<const char*>(record.data()), record.size());
      return true;
    });
    piece.clear();
    if (!step || *step == offload::CopyStep::done) return records;
  }
}

TEST(NumberedTransactions, OneThatIsAskedForAgainIsDoneOnceAndGetsItsFirstAnswer) {
  NumberedStore f;
  const std::uint64_t client = f.make();
  const std::string first = f.ask({client, 1, 0}, {{"map_a", StepKind::get, "k"},
                                                   {"map_a", StepKind::put, "k", "1"},
                                                   {"hash_a", StepKind::put, "k", "1"}});
  EXPECT_EQ(first.substr(0, 6), "whole ");
  ASSERT_TRUE(f.transact({{"map_a", StepKind::put, "k", "2"}}));
  const std::uint64_t taken = f.clock().taken();
  EXPECT_EQ(f.ask({client, 1, 0}, {{"map_a", StepKind::get, "k"},
                                   {"map_a", StepKind::put, "k", "1"},
                                   {"hash_a", StepKind::put, "k", "1"}}),
            first);
  EXPECT_EQ(f.clock().taken(), taken) << "it was done again";
  EXPECT_EQ(f.get("map_a", "k"), "2");
}

TEST(NumberedTransactions, WhatReadAloneOrFailedIsAnsweredAlikeAgain) {
  NumberedStore f;
  const std::uint64_t client = f.make();
  ASSERT_TRUE(f.transact({{"map_a", StepKind::put, "k", "1"}}));
  const std::vector<NamedStep> reads{{"map_a", StepKind::get, "k"}};
  const std::vector<NamedStep> fails{{"map_a", StepKind::put, "k", "3"},
                                     {"map_a", StepKind::check, "k", "2", ConditionKind::value}};
  const std::string read = f.ask({client, 1, 0}, reads);
  EXPECT_EQ(f.ask({client, 2, 0}, fails), "failed 1");
  ASSERT_TRUE(f.transact({{"map_a", StepKind::put, "k", "2"}}));
  EXPECT_EQ(f.ask({client, 1, 0}, reads), read);
  EXPECT_EQ(f.ask({client, 2, 0}, fails), "failed 1");
  EXPECT_NE(f.ask({client, 3, 0}, reads), read);
}

TEST(NumberedTransactions, AnAnswerIsKnownUntilItIsAcknowledgedAndNothingIsDoneBehindThat) {
  NumberedStore f;
  const std::uint64_t client = f.make();
  const std::vector<NamedStep> put{{"map_a", StepKind::put, "k", "1"}};
  const std::string first = f.ask({client, 1, 0}, put);
  f.ask({client, 2, 0}, put);
  EXPECT_EQ(f.ask({client, 1, 0}, put), first);
  f.ask({client, 3, 1}, put);
  const std::uint64_t taken = f.clock().taken();
  EXPECT_EQ(f.ask({client, 1, 0}, put), "outdated 2");
  EXPECT_EQ(f.ask({client, 4, 3}, {{"map_a", StepKind::put, "k", "2"}}).substr(0, 5), "whole");
  EXPECT_EQ(f.ask({client, 3, 2}, put), "outdated 2");
  EXPECT_EQ(f.clock().taken(), taken + 1);
}

TEST(NumberedTransactions, ANumberIsOfOneTransaction) {
  NumberedStore f;
  const std::uint64_t client = f.make();
  f.ask({client, 1, 0}, {{"map_a", StepKind::put, "k", "1"}});
  EXPECT_EQ(f.ask({client, 1, 0}, {{"map_a", StepKind::put, "k", "2"}}), "already_exists 0");
  EXPECT_EQ(f.get("map_a", "k"), "1");
}

TEST(NumberedTransactions, AClientThatIsNotKnownIsRefused) {
  NumberedStore f;
  const std::uint64_t client = f.make("ann");
  const std::vector<NamedStep> put{{"map_a", StepKind::put, "k", "1"}};
  EXPECT_EQ(f.ask({client + 1, 1, 0}, put, "ann"), "outdated 1");
  EXPECT_EQ(f.ask({client, 1, 0}, put, "bob"), "outdated 1") << "it is another's";
  EXPECT_EQ(f.clients().forget(client, "bob", nullptr).error().code, Code::outdated);
  ASSERT_TRUE(f.clients().forget(client, "ann", nullptr));
  EXPECT_EQ(f.ask({client, 1, 0}, put, "ann"), "outdated 1");
  EXPECT_EQ(f.get("map_a", "k"), std::nullopt);
}

TEST(NumberedTransactions, ARefusalIsAnsweredAgainButWhereAnotherTryMayDo) {
  NumberedStore f;
  const std::uint64_t client = f.make();
  auto begun = f.clients().begin({client, 1, 0, 7}, {});
  ASSERT_TRUE(begun && begun->turn);
  begun->turn.refuse({Code::not_found, 0, 3});
  begun = f.clients().begin({client, 1, 0, 7}, {});
  ASSERT_TRUE(begun && begun->answer != nullptr);
  EXPECT_EQ(begun->answer->fact, ClientFact::invalid);
  EXPECT_EQ(begun->answer->error, (Error{Code::not_found, 0, 3}));
  EXPECT_TRUE(store::is_refused_for_good({Code::not_found}));
  EXPECT_FALSE(store::is_refused_for_good({Code::out_of_memory}));
  begun = f.clients().begin({client, 2, 0, 7}, {});
  ASSERT_TRUE(begun && begun->turn);
  begun->turn = {};  // it was not done: the next one may
  begun = f.clients().begin({client, 2, 0, 8}, {});
  EXPECT_TRUE(begun && begun->turn);
}

TEST(NumberedTransactions, WhoeverAsksWhileTheFirstRunsWaits) {
  NumberedStore f;
  const std::uint64_t client = f.make();
  auto first = f.clients().begin({client, 1, 0, 7}, {});
  ASSERT_TRUE(first && first->turn);
  const auto second = f.clients().begin({client, 1, 0, 7}, {});
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->waits());
  EXPECT_EQ(f.clients().begin({client, 1, 0, 8}, {}).error().code, Code::already_exists);
  EXPECT_EQ(f.clients().forget(client, {}, nullptr).error().code, Code::busy);
  first->turn.keep({.fact = ClientFact::done, .version = 5}, [] { return std::uint64_t{0}; });
  const auto third = f.clients().begin({client, 1, 0, 7}, {});
  ASSERT_TRUE(third && third->answer != nullptr);
  EXPECT_EQ(third->answer->version, 5u);
}

// --- what the records make -----------------------------------------------------------------------

TEST(NumberedTransactions, RecordsHaveWhatNumbersCameTo) {
  catalog::RecordingSink sink;
  NumberedStore f;
  f.core.catalog.record_to(&sink);
  const std::uint64_t client = f.make("ann", true);
  const std::uint64_t gone = f.make("ann");
  const std::vector<NamedStep> long_put{{"map_a", StepKind::put, "long", std::string(3000, 'v')}};
  const std::vector<NamedStep> reads{{"map_a", StepKind::get, "long"},
                                     {"hash_a", StepKind::put, "k", "1"}};
  const std::vector<NamedStep> too_much{{"map_a", StepKind::get, "long"},
                                        {"hash_a", StepKind::get, "k"},
                                        {"map_a", StepKind::put, "longer", std::string(5000, 'v')}};
  const std::vector<NamedStep> reads_longer{{"map_a", StepKind::get, "longer"},
                                            {"map_a", StepKind::put, "k", "1"}};
  const std::vector<NamedStep> fails{{"map_a", StepKind::check, "k", "2", ConditionKind::value}};
  f.ask({gone, 1, 0}, long_put, "ann");
  std::map<std::uint64_t, std::string> answers;
  const std::vector<std::vector<NamedStep>> asked{long_put, reads, too_much, reads_longer, fails};
  for (std::uint64_t i = 0; i < asked.size(); ++i) {
    answers[i + 1] = f.ask({client, i + 1, 0}, asked[i], "ann");
  }
  EXPECT_EQ(answers[4].substr(0, 5), "whole") << "its first answer is whole";
  answers[4] = "done_alone" + answers[4].substr(5, answers[4].find(' ', 6) - 5);
  const auto forgotten = f.clients().forget(gone, "ann", &sink);
  EXPECT_EQ(forgotten.value_or(0), sink.handed_over());
  const auto check = [&](RestoredStore& other) {
    const std::uint64_t taken = other.f.clock().taken();
    for (std::uint64_t i = 0; i < asked.size(); ++i) {
      EXPECT_EQ(other.f.ask({client, i + 1, 0}, asked[i], "ann"), answers[i + 1]) << i;
    }
    EXPECT_EQ(other.f.ask({gone, 1, 0}, long_put, "ann"), "outdated 1");
    EXPECT_EQ(other.f.ask({client, 1, 0}, long_put, "bob"), "outdated 1");
    EXPECT_EQ(other.f.clock().taken(), taken);
    EXPECT_EQ(other.f.clients().size(), 1u);
    EXPECT_EQ(other.f.clients().bytes(), f.clients().bytes());
  };
  std::vector<std::string> records = records_in(sink);
  RestoredStore by_log(records);
  check(by_log);
  for (const std::size_t piece_bytes : {std::size_t{1}, std::size_t{256} << 10}) {
    std::vector<std::string> copied = copy_of(f, piece_bytes);
    RestoredStore by_copy(copied);
    check(by_copy);
    // All that is behind the copy's beginning may be in it already.
    copied.insert(copied.end(), records.begin(), records.end());
    RestoredStore by_both(copied);
    EXPECT_EQ(by_both.f.ask({client, 2, 0}, reads, "ann"), answers[2]);
  }
  f.core.catalog.record_to(nullptr);
}

TEST(NumberedTransactions, WhatWasAcknowledgedIsInTheRecordOfTheNextNumber) {
  catalog::RecordingSink sink;
  NumberedStore f;
  f.core.catalog.record_to(&sink);
  const std::uint64_t client = f.make();
  const std::vector<NamedStep> reads{{"map_a", StepKind::get, "k"}};
  for (std::uint64_t number = 1; number <= 600; ++number) {
    ASSERT_EQ(f.ask({client, number, number - 1}, reads).substr(0, 5), "whole") << number;
  }
  RestoredStore other(records_in(sink));
  EXPECT_EQ(other.f.ask({client, 599, 598}, reads), "outdated 2");
  EXPECT_EQ(other.f.ask({client, 600, 599}, reads).substr(0, 5), "whole");
  EXPECT_EQ(other.f.clients().bytes(), f.clients().bytes());
  f.core.catalog.record_to(nullptr);
}

// No repeat gets an answer that is not durable.
TEST(NumberedTransactions, AnAnswerThatIsAskedForAgainWaitsForItsRecord) {
  using Release = store::KeptAnswer::Release;
  catalog::RecordingSink sink(catalog::RecordingSink::Durable::by_hand);
  NumberedStore f;
  f.core.catalog.record_to(&sink);
  const std::uint64_t client = f.make();
  for (const bool writes : {true, false}) {
    std::vector<NamedStep> steps{{"map_a", StepKind::get, "k"}};
    if (writes) steps.push_back({"map_a", StepKind::put, "k", "1"});
    const std::uint64_t number = writes ? 1 : 2;
    ASSERT_TRUE(f.run({client, number, 0}, steps));
    const auto again = f.clients().begin(f.number_of({client, number, 0}, steps), {});
    ASSERT_TRUE(again && again->answer != nullptr);
    EXPECT_EQ(again->answer->release(&sink), Release::waits);
    sink.make_durable();
    EXPECT_EQ(again->answer->release(&sink), Release::released);
  }
  const std::vector<NamedStep> last{{"map_a", StepKind::put, "k", "2"}};
  ASSERT_TRUE(f.run({client, 3, 0}, last));
  sink.fail_all();
  const auto again = f.clients().begin(f.number_of({client, 3, 0}, last), {});
  ASSERT_TRUE(again && again->answer != nullptr);
  EXPECT_EQ(again->answer->release(&sink), Release::lost);
  f.core.catalog.record_to(nullptr);
}

TEST(NumberedTransactions, OneForWhoseRecordThereIsNoRoomMayBeTriedAgain) {
  catalog::RecordingSink sink;
  NumberedStore f;
  f.core.catalog.record_to(&sink);
  const std::uint64_t client = f.make();
  const std::vector<NamedStep> fails{{"map_a", StepKind::check, "k", "2", ConditionKind::value}};
  const std::vector<NamedStep> put{{"map_a", StepKind::put, "k", "1"}};
  sink.refuse(true);
  EXPECT_EQ(f.ask({client, 1, 0}, fails), "busy 0");
  EXPECT_EQ(f.ask({client, 2, 0}, put), "busy 0");
  sink.refuse(false);
  EXPECT_EQ(f.ask({client, 1, 0}, fails), "failed 0");
  EXPECT_EQ(f.ask({client, 2, 0}, put).substr(0, 5), "whole");
  EXPECT_EQ(sink.rooms(), 0u);
  f.core.catalog.record_to(nullptr);
}

// --- bounds --------------------------------------------------------------------------------------

TEST(NumberedTransactions, AClientHas256NumbersWithoutAnAcknowledgement) {
  NumberedStore f;
  const std::uint64_t client = f.make();
  const std::vector<NamedStep> put{{"map_a", StepKind::put, "k", "1"}};
  for (std::uint64_t number = 1; number <= 256; ++number) {
    ASSERT_EQ(f.ask({client, number, 0}, put).substr(0, 5), "whole");
  }
  EXPECT_EQ(f.ask({client, 257, 0}, put), "exhausted 256");
  EXPECT_EQ(f.ask({client, 257, 1}, put).substr(0, 5), "whole");
  EXPECT_EQ(f.ask({client, 2, 1}, put).substr(0, 5), "whole");
}

TEST(NumberedTransactions, OfTooManyClientsTheOneThatWasHeardOfLeastLatelyIsForgotten) {
  catalog::RecordingSink sink;
  NumberedStore f;
  f.core.catalog.record_to(&sink);
  const std::vector<NamedStep> put{{"map_a", StepKind::put, "k", "1"}};
  const std::uint64_t kept = f.make("ann", true);
  const std::uint64_t other = f.make("bob");
  std::vector<std::uint64_t> clients;
  while (clients.size() + 1 < NumberedClients::kClientsOfPrincipalMax) {
    clients.push_back(f.make("ann"));
  }
  f.ask({clients[0], 1, 0}, put, "ann");
  const auto runs = f.clients().begin({clients[1], 1, 0, 7}, "ann");
  ASSERT_TRUE(runs && runs->turn);
  clients.push_back(f.make("ann"));
  EXPECT_EQ(f.clients().size(), NumberedClients::kClientsOfPrincipalMax + 1);
  EXPECT_EQ(f.ask({clients[2], 1, 0}, put, "ann"), "outdated 1");
  EXPECT_EQ(f.ask({clients[0], 2, 0}, put, "ann").substr(0, 5), "whole");
  EXPECT_EQ(f.ask({kept, 1, 0}, put, "ann").substr(0, 5), "whole") << "its program keeps it";
  EXPECT_EQ(f.ask({other, 1, 0}, put, "bob").substr(0, 5), "whole") << "it is another's";
  RestoredStore restored(records_in(sink));
  EXPECT_EQ(restored.f.clients().size(), f.clients().size());
  EXPECT_EQ(restored.f.ask({clients[2], 1, 0}, put, "ann"), "outdated 1");
  clients.push_back(restored.f.make("ann"));
  EXPECT_EQ(restored.f.ask({clients[0], 3, 2}, put, "ann").substr(0, 5), "whole") << "it was heard";
  EXPECT_EQ(restored.f.ask({clients[1], 1, 0}, put, "ann"), "outdated 1");
  f.core.catalog.record_to(nullptr);
}

// A checkpoint may have clients that were forgotten while it was made, and those that came then.
TEST(NumberedTransactions, ACopyMayHaveMoreClientsThanThereWereAtATime) {
  NumberedStore f;
  catalog::ClientRecord known{};
  known.fact = static_cast<std::uint8_t>(ClientFact::known);
  std::vector<std::byte> room(catalog::client_record_bytes(0));
  const std::string_view record(reinterpret_cast<const char*>(room.data()), room.size());
  for (known.client = 1; known.client <= NumberedClients::kClientsMax + 1; ++known.client) {
    std::ranges::fill(room, std::byte{0});
    catalog::write_client_record(room, known, {});
    ASSERT_TRUE(f.clients().apply_redo(record));
  }
  f.make();
  EXPECT_LE(f.clients().size(), NumberedClients::kClientsMax + 1);
}

TEST(NumberedTransactions, AnswersHaveABoundForEachPrincipal) {
  NumberedStore f;
  ASSERT_TRUE(f.transact({{"map_a", StepKind::put, "k", std::string(4000, 'v')}}));
  const std::vector<NamedStep> reads{{"map_a", StepKind::get, "k"}};
  const std::uint64_t client = f.make("ann");
  std::uint64_t number = 0;
  std::vector<std::uint64_t> clients{client};
  while (f.clients().bytes() + 5000 < NumberedClients::kBytesOfPrincipalMax) {
    if (++number > 256) {
      clients.push_back(f.make("ann"));
      number = 1;
    }
    ASSERT_EQ(f.ask({clients.back(), number, 0}, reads, "ann").substr(0, 5), "whole");
  }
  const std::uint64_t last = f.make("ann");
  const std::uint64_t other = f.make("bob");
  for (std::uint64_t i = 1; i <= 3; ++i) f.ask({last, i, 0}, reads, "ann");
  EXPECT_EQ(f.ask({last, 3, 0}, reads, "ann"), "done_alone 0");
  EXPECT_LE(f.clients().bytes(), NumberedClients::kBytesOfPrincipalMax);
  f.ask({other, 1, 0}, reads, "bob");
  EXPECT_EQ(f.ask({other, 1, 0}, reads, "bob").substr(0, 5), "whole");
  for (const std::uint64_t one : clients) ASSERT_TRUE(f.clients().forget(one, "ann", nullptr));
  f.ask({last, 4, 0}, reads, "ann");
  EXPECT_EQ(f.ask({last, 4, 0}, reads, "ann").substr(0, 5), "whole");
}

// --- damaged records -----------------------------------------------------------------------------

TEST(NumberedTransactions, ARecordThatIsNoneIsRefused) {
  NumberedStore f;
  catalog::ClientRecord good{};
  good.client = 7;
  good.number = 3;
  good.acknowledged = 2;
  good.fact = static_cast<std::uint8_t>(ClientFact::done);
  const auto refusal = [&](const catalog::ClientRecord& record, std::string_view bytes,
                           std::size_t more = 0, char last = 0) {
    std::vector<std::byte> room(catalog::client_record_bytes(bytes.size()) + more);
    catalog::write_client_record(room, record, bytes);
    if (last != 0) room.back() = static_cast<std::byte>(last);
    const auto applied =
        f.clients().apply_redo({reinterpret_cast<const char*>(room.data()), room.size()});
    return applied ? Code::invalid : applied.error().code;
  };
  EXPECT_EQ(refusal(good, "answer"), Code::invalid);
  EXPECT_EQ(refusal(good, "answer", 8), Code::invalid);
  EXPECT_EQ(refusal(good, "answer", 8, 1), Code::corrupt);
  EXPECT_EQ(refusal(good, std::string(4097, 'v')), Code::corrupt);
  for (const auto change : std::initializer_list<void (*)(catalog::ClientRecord&)>{
           [](auto& record) { record.client = 0; }, [](auto& record) { record.number = 2; },
           [](auto& record) { record.number = 259; }, [](auto& record) { record.fact = 0; },
           [](auto& record) { record.fact = 6; }, [](auto& record) { record.fact = 5; },
           [](auto& record) { record.fact = 1; }, [](auto& record) { record.reserved[1] = 1; }}) {
    catalog::ClientRecord bad = good;
    change(bad);
    EXPECT_EQ(refusal(bad, "answer"), Code::corrupt);
  }
  EXPECT_EQ(f.clients().size(), 0u);
}

// --- threads -------------------------------------------------------------------------------------

// All threads send each number concurrently, as one client: one of them runs it.
TEST(NumberedTransactionsConcurrency, AllWhoAskForANumberGetOneAnswer) {
  constexpr std::uint64_t kNumbers = 150;
  constexpr std::uint32_t kThreads = 3;
  NumberedStore f;
  const std::uint64_t client = f.make();
  ASSERT_TRUE(f.transact({{"map_a", StepKind::put, "count", "0"}}));
  std::vector<std::vector<std::string>> answers(kThreads);
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (std::uint64_t number = 1; number <= kNumbers; ++number) {
        // What it reads is what the one before wrote: one that is done twice breaks the row.
        const std::vector<NamedStep> steps{
            {"map_a", StepKind::get, "count"},
            {"map_a", StepKind::check, "count", std::to_string(number - 1), ConditionKind::value},
            {"map_a", StepKind::put, "count", std::to_string(number)},
            {"hash_a", StepKind::put, "n" + std::to_string(number), "1"}};
        const std::string answer = f.ask({client, number, number > 20 ? number - 20 : 0}, steps);
        if (answer.starts_with("outdated")) continue;  // the others are far ahead
        if (!answer.starts_with("whole")) ++wrong;
        answers[i].push_back(std::to_string(number) + " " + answer);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(f.get("map_a", "count"), std::to_string(kNumbers));
  EXPECT_EQ(f.hash("hash_a")->numbers().entries, kNumbers);
  std::map<std::string, std::string> first;
  for (const auto& of_thread : answers) {
    for (const std::string& answer : of_thread) {
      const std::string number = answer.substr(0, answer.find(' '));
      EXPECT_EQ(first.emplace(number, answer).first->second, answer);
    }
  }
  EXPECT_EQ(f.faults(), "");
}

// A copy made while numbers complete has each of them, or the records after it do.
TEST(NumberedTransactionsConcurrency, ACopyAndTheRecordsBehindItHaveAllNumbers) {
  constexpr std::uint64_t kNumbers = 200;
  catalog::RecordingSink sink;
  NumberedStore f;
  f.core.catalog.record_to(&sink);
  const std::uint64_t client = f.make();
  const auto steps_of = [](std::uint64_t number) {
    return std::vector<NamedStep>{{"map_a", StepKind::put, "k", std::to_string(number)}};
  };
  std::atomic<bool> ended{false};
  std::thread writer([&] {
    for (std::uint64_t number = 1; number <= kNumbers; ++number) {
      EXPECT_EQ(f.ask({client, number, 0}, steps_of(number)).substr(0, 5), "whole");
    }
    ended = true;
  });
  std::vector<std::string> copied;
  std::uint64_t from = 0;
  do {
    from = sink.count();
    copied = copy_of(f, 1);
  } while (!ended && sink.count() < kNumbers / 2);
  writer.join();
  const std::vector<std::string> records = records_in(sink);
  copied.insert(copied.end(), records.begin() + static_cast<std::ptrdiff_t>(from), records.end());
  RestoredStore other(copied);
  const std::uint64_t taken = other.f.clock().taken();
  for (std::uint64_t number = 1; number <= kNumbers; ++number) {
    EXPECT_EQ(other.f.ask({client, number, 0}, steps_of(number)).substr(0, 5), "whole") << number;
  }
  EXPECT_EQ(other.f.clock().taken(), taken) << "a number was done twice";
  f.core.catalog.record_to(nullptr);
}

}  // namespace
}  // namespace espalier::test

// SPDX-License-Identifier: Apache-2.0
#include "bench/bank_points.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/zipf.hpp"
#include "bench/mix.hpp"
#include "bench/request_list.hpp"
#include "bench/together.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint8_t kChecking = 0;
constexpr std::uint8_t kSavings = 1;
constexpr std::int64_t kFirstBalance = 10'000;

std::int64_t balance_of(const std::string& value) {
  std::int64_t balance = 0;
  if (value.size() != sizeof balance) throw std::runtime_error("an account has no balance");
  std::memcpy(&balance, value.data(), sizeof balance);
  return balance;
}

/// One thread's transactions, and the money that they added.
class Teller {
 public:
  Teller(TransactionSession& session, const BankSetting& setting, std::uint32_t thread)
      : session_(session),
        accounts_(setting.accounts),
        hot_(std::max<std::uint64_t>(2, setting.accounts * 4 / 100)),
        random_(base::mix64(setting.seed) + thread) {}

  void serve_one() {
    amount_ = static_cast<std::int64_t>(1 + random_.below(100));
    const std::uint64_t kind = random_.below(100);
    if (kind < 25) return pay();
    if (kind < 40) return deposit(kChecking);
    if (kind < 55) return deposit(kSavings);
    if (kind < 70) return write_check();
    if (kind < 85) return look();
    amalgamate();
  }
  [[nodiscard]] std::int64_t brought_in() const { return brought_in_; }
  [[nodiscard]] std::uint64_t looked() const { return looked_; }

 private:
  [[nodiscard]] std::uint64_t draw() {
    return random_.below(100) < 90 ? random_.below(hot_) : random_.below(accounts_);
  }
  /// Another account than this one.
  [[nodiscard]] std::uint64_t draw_other(std::uint64_t account) {
    std::uint64_t other = draw();
    while (other == account) other = draw();
    return other;
  }
  /// Sets a balance, and where it is written.
  static void set(std::string& value, std::int64_t balance) { value = base::bytes_of(balance); }

  void deposit(std::uint8_t map) {
    const TransactionKey keys[] = {{map, draw(), true}};
    session_.modify(keys, [&](std::span<std::string> values) {
      set(values[0], balance_of(values[0]) + amount_);
      return true;
    });
    brought_in_ += amount_;
  }

  // An account with too little pays 1 more.
  void write_check() {
    const std::uint64_t account = draw();
    const TransactionKey keys[] = {{kChecking, account, true}, {kSavings, account, false}};
    std::int64_t paid = 0;
    session_.modify(keys, [&](std::span<std::string> values) {
      const std::int64_t checking = balance_of(values[0]);
      paid = checking + balance_of(values[1]) < amount_ ? amount_ + 1 : amount_;
      set(values[0], checking - paid);
      return true;
    });
    brought_in_ -= paid;
  }

  void look() {
    const std::uint64_t account = draw();
    const TransactionKey keys[] = {{kChecking, account, false}, {kSavings, account, false}};
    session_.modify(keys, [&](std::span<std::string> values) {
      looked_ += static_cast<std::uint64_t>(balance_of(values[0]) + balance_of(values[1]));
      return false;
    });
  }

  void pay() {
    const std::uint64_t from = draw();
    const std::uint64_t to = draw_other(from);
    const TransactionKey keys[] = {{kChecking, std::min(from, to), true},
                                   {kChecking, std::max(from, to), true}};
    session_.modify(keys, [&](std::span<std::string> values) {
      std::string& payer = values[from < to ? 0 : 1];
      std::string& payee = values[from < to ? 1 : 0];
      if (balance_of(payer) < amount_) return false;
      set(payer, balance_of(payer) - amount_);
      set(payee, balance_of(payee) + amount_);
      return true;
    });
  }

  void amalgamate() {
    const std::uint64_t from = draw();
    const std::uint64_t to = draw_other(from);
    const TransactionKey keys[] = {{kChecking, std::min(from, to), true},
                                   {kChecking, std::max(from, to), true},
                                   {kSavings, from, true}};
    session_.modify(keys, [&](std::span<std::string> values) {
      std::string& giver = values[from < to ? 0 : 1];
      std::string& taker = values[from < to ? 1 : 0];
      set(taker, balance_of(taker) + balance_of(giver) + balance_of(values[2]));
      set(giver, 0);
      set(values[2], 0);
      return true;
    });
  }

  TransactionSession& session_;
  const std::uint64_t accounts_;
  const std::uint64_t hot_;
  base::Random random_;
  std::int64_t amount_ = 0;
  std::int64_t brought_in_ = 0;
  std::uint64_t looked_ = 0;
};

/// Sums all balances, and hashes them.
std::int64_t count_money(TransactionSession& session, std::uint64_t accounts, std::uint64_t& hash) {
  std::int64_t sum = 0;
  for (std::uint64_t account = 0; account < accounts; ++account) {
    const TransactionKey keys[] = {{kChecking, account, false}, {kSavings, account, false}};
    session.modify(keys, [&](std::span<std::string> values) {
      for (const std::string& value : values) {
        sum += balance_of(value);
        hash += item_hash(base::bytes_of(account), value);
      }
      return false;
    });
  }
  return sum;
}

/// Sessions of a target, one for each thread.
using Sessions = std::vector<std::unique_ptr<TransactionSession>>;

Sessions open_sessions(TransactionTarget& target, std::uint32_t threads) {
  Sessions sessions;
  for (std::uint32_t i = 0; i < threads; ++i) sessions.push_back(target.open_session());
  return sessions;
}

/// Runs all threads, times each transaction, and adds up the results.
void run_transactions(std::uint64_t ops, const Sessions& sessions,
                      const std::function<void(std::uint32_t thread)>& one, PointSample& sample) {
  const auto threads = static_cast<std::uint32_t>(sessions.size());
  std::vector<base::Histogram> latencies(threads);
  const auto work = [&](std::uint32_t thread) {
    for (std::uint64_t i = share_of(ops, threads, thread); i > 0; --i) {
      const base::Stopwatch watch;
      one(thread);
      latencies[thread].record(watch.elapsed_ns());
    }
  };
  sample.took(ops, run_together(threads, [](std::uint32_t) {}, work));
  sample.ns_per_op *= threads;
  for (const base::Histogram& each : latencies) sample.latencies.merge(each);
  std::uint64_t repeats = 0;
  for (const auto& session : sessions) repeats += session->repeats();
  sample.numbers.emplace_back("repeats_per_op",
                              static_cast<double>(repeats) / static_cast<double>(ops));
}

}  // namespace

PointSample measure_bank(const BankSetting& setting) {
  const auto target = make_transaction_target(setting.target);
  const Sessions sessions = open_sessions(*target, setting.threads);
  TransactionSession& first = *sessions.front();
  for (std::uint64_t account = 0; account < setting.accounts; ++account) {
    for (const std::uint8_t map : {kChecking, kSavings}) {
      first.load(map, account, base::bytes_of(kFirstBalance));
    }
  }
  std::vector<Teller> tellers;
  for (std::uint32_t i = 0; i < setting.threads; ++i) {
    tellers.emplace_back(*sessions[i], setting, i);
  }
  PointSample sample;
  run_transactions(
      setting.ops, sessions, [&](std::uint32_t thread) { tellers[thread].serve_one(); }, sample);
  std::int64_t due = 2 * kFirstBalance * static_cast<std::int64_t>(setting.accounts);
  std::uint64_t looked = 0;
  for (const Teller& teller : tellers) {
    due += teller.brought_in();
    looked += teller.looked();
  }
  std::uint64_t hash = 0;
  const std::int64_t money = count_money(first, setting.accounts, hash);
  if (money != due) {
    throw std::runtime_error(
        fmt::format("there is money of {}, and there should be {}", money, due));
  }
  // The result of several threads depends on their order.
  sample.checksum = setting.threads == 1 ? hash + looked : setting.ops;
  return sample;
}

PointSample measure_ycsb_transactions(const YcsbTransactionSetting& setting) {
  const auto target = make_transaction_target(setting.target);
  const Sessions sessions = open_sessions(*target, setting.threads);
  std::string value(setting.value_bytes, '\0');
  const auto fill = [&](std::uint64_t from) {
    base::Random random(from);
    random.fill(std::as_writable_bytes(std::span(value)));
  };
  for (std::uint64_t key = 0; key < setting.keys; ++key) {
    fill(key);
    sessions.front()->load(0, key, value);
  }
  const base::ScrambledZipf zipf(setting.keys);
  struct Client {
    base::Random random;
    std::vector<TransactionKey> keys;
    std::string value;
    std::uint64_t sum = 0;
  };
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < setting.threads; ++i) {
    clients.push_back({base::Random(base::mix64(setting.seed) + i), {}, value});
  }
  const auto one = [&](std::uint32_t thread) {
    Client& client = clients[thread];
    const std::uint64_t length = client.random.between(2, setting.length);
    client.keys.clear();
    while (client.keys.size() < length) {
      const std::uint64_t key = zipf(client.random);
      if (std::ranges::count(client.keys, key, &TransactionKey::number) != 0) continue;
      client.keys.push_back({0, key, client.random.chance(0.5)});
    }
    std::ranges::sort(client.keys, {}, &TransactionKey::number);
    const std::uint64_t mark = client.random();
    std::memcpy(client.value.data(), &mark, sizeof mark);
    client.sum += sessions[thread]->run(client.keys, client.value);
  };
  PointSample sample;
  run_transactions(setting.ops, sessions, one, sample);
  sample.checksum = setting.threads == 1 ? clients.front().sum : setting.ops;
  return sample;
}

}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/bytes.hpp"
#include "bench/map_session.hpp"
#include "bench/mix.hpp"
#include "bench/transaction_target.hpp"
#include "espalier/hash_map.hpp"
#include "espalier/transaction.hpp"

namespace espalier::bench {
namespace {

constexpr std::string_view kMapNames[kTransactionMaps] = {"first", "second"};

class EmbeddedTransactions final : public TransactionSession {
 public:
  EmbeddedTransactions(Store& store, const std::vector<HashMap>& maps)
      : store_(store), maps_(maps) {}

  void load(std::uint8_t map, std::uint64_t number, std::string_view value) override {
    static_cast<void>(
        value_or_throw(maps_[map].put(base::bytes_of(number), value), "cannot load a pair"));
  }

  void modify(std::span<const TransactionKey> keys, const Change& change) override {
    bool writes = false;
    for (const TransactionKey& key : keys) writes = writes || key.writes;
    if (!writes) return read_alone(keys, change);
    while (!try_to_modify(keys, change)) ++repeats_;
  }

  std::uint64_t run(std::span<const TransactionKey> keys, std::string_view value) override {
    asked_.clear();
    for (const TransactionKey& key : keys) {
      if (key.writes) {
        asked_.put(kMapNames[key.map], base::bytes_of(key.number), value);
      } else {
        asked_.get(kMapNames[key.map], base::bytes_of(key.number));
      }
    }
    const auto done = value_or_throw(store_.transact(asked_), "a transaction fails");
    std::uint64_t sum = 0;
    for (const auto& found : done.found) {
      if (!found) throw std::runtime_error("a transaction finds no pair");
      sum += bytes_hash(found->value);
    }
    return sum;
  }

 private:
  void read_alone(std::span<const TransactionKey> keys, const Change& change) {
    asked_.clear();
    for (const TransactionKey& key : keys) {
      asked_.get(kMapNames[key.map], base::bytes_of(key.number));
    }
    auto done = value_or_throw(store_.transact(asked_), "a transaction fails");
    values_.resize(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (!done.found[i]) throw std::runtime_error("a transaction finds no pair");
      values_[i] = std::move(done.found[i]->value);
    }
    static_cast<void>(change(values_));
  }

  // Plain gets, which need not be of one moment: all of them become conditions.
  bool try_to_modify(std::span<const TransactionKey> keys, const Change& change) {
    values_.resize(keys.size());
    asked_.clear();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::string_view key = base::bytes_of(keys[i].number);
      if (!value_or_throw(maps_[keys[i].map].get(key, values_[i]), "a get fails")) {
        throw std::runtime_error("a transaction finds no pair");
      }
      asked_.only_if_value(kMapNames[keys[i].map], key, values_[i]);
    }
    if (!change(values_)) return true;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (!keys[i].writes) continue;
      asked_.put(kMapNames[keys[i].map], base::bytes_of(keys[i].number), values_[i]);
    }
    const auto done = store_.transact(asked_);
    if (!done && done.error().code == Code::condition_failed) return false;
    if (!done) throw std::runtime_error("a transaction fails: " + message(done.error()));
    return true;
  }

  Store& store_;
  std::vector<HashMap> maps_;
  Transaction asked_;
  std::vector<std::string> values_;
};

class EmbeddedTransactionTarget final : public TransactionTarget {
 public:
  EmbeddedTransactionTarget()
      : store_(value_or_throw(Store::open({.shared_clock = true}), "cannot open a store")) {
    for (const std::string_view name : kMapNames) {
      maps_.push_back(value_or_throw(store_.create_hash_map(name), "cannot make a hash map"));
    }
  }
  std::unique_ptr<TransactionSession> open_session() override {
    return std::make_unique<EmbeddedTransactions>(store_, maps_);
  }

 private:
  Store store_;
  std::vector<HashMap> maps_;
};

}  // namespace

std::unique_ptr<TransactionTarget> make_embedded_transactions() {
  return std::make_unique<EmbeddedTransactionTarget>();
}

}  // namespace espalier::bench

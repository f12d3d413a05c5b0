// SPDX-License-Identifier: Apache-2.0
// Of the C API: reads, conditions and writes of several maps at one moment.
#include <limits>
#include <utility>

#include "capi/c_handles.hpp"
#include "espalier/transaction.hpp"

namespace c = espalier::client::c;
using espalier::Code;
using espalier::Result;

struct espalier_transaction {
  espalier::Transaction transaction;
  espalier::Transacted done{};  // what it came to the last time
};

namespace {

// What no transaction takes is refused before it is copied.
constexpr std::size_t kStepBytesMax = std::size_t{1} << 20;

Result<void> fits_a_step(const espalier_bytes& key, const espalier_bytes& value) {
  if (key.size == 0 || key.size > std::numeric_limits<std::uint16_t>::max()) {
    return espalier::fail(Code::key_too_long, std::numeric_limits<std::uint16_t>::max());
  }
  if (value.size > kStepBytesMax) return espalier::fail(Code::value_too_long, kStepBytesMax);
  return {};
}

// Adds one step, by `add(transaction)`.
template <class Add>
espalier_code add_step(const char* call, espalier_transaction* transaction,
                       const espalier_bytes& map, const espalier_bytes& key,
                       const espalier_bytes& value, const Add& add) noexcept {
  return c::run(call,
                {c::given(transaction, "transaction"), c::good(map, "map"), c::good(key, "key"),
                 c::good(value, "value")},
                [&]() -> Result<void> {
                  if (const auto good = fits_a_step(key, value); !good) return good;
                  add(transaction->transaction);
                  return {};
                });
}

// Does it, by `transact()`.
template <class Transact>
Result<void> do_transaction(espalier_transaction& transaction, espalier_version_number* version,
                            const Transact& transact) {
  transaction.done = {};
  auto done = transact();
  if (!done) return std::unexpected(done.error());
  transaction.done = std::move(*done);
  if (version != nullptr) *version = transaction.done.version;
  return {};
}

}  // namespace

espalier_code espalier_transaction_create(espalier_transaction** transaction) {
  return c::run(__func__, {c::given(transaction, "transaction")}, [&]() -> Result<void> {
    *transaction = new espalier_transaction;
    return {};
  });
}

void espalier_transaction_destroy(espalier_transaction* transaction) { delete transaction; }

espalier_code espalier_transaction_clear(espalier_transaction* transaction) {
  return c::run(__func__, {c::given(transaction, "transaction")}, [&]() -> Result<void> {
    transaction->transaction.clear();
    transaction->done = {};
    return {};
  });
}

espalier_code espalier_transaction_get(espalier_transaction* transaction, espalier_bytes map,
                                       espalier_bytes key) {
  return add_step(__func__, transaction, map, key, {},
                  [&](auto& to) { to.get(c::view(map), c::view(key)); });
}

espalier_code espalier_transaction_put(espalier_transaction* transaction, espalier_bytes map,
                                       espalier_bytes key, espalier_bytes value) {
  return add_step(__func__, transaction, map, key, value,
                  [&](auto& to) { to.put(c::view(map), c::view(key), c::view(value)); });
}

espalier_code espalier_transaction_erase(espalier_transaction* transaction, espalier_bytes map,
                                         espalier_bytes key) {
  return add_step(__func__, transaction, map, key, {},
                  [&](auto& to) { to.erase(c::view(map), c::view(key)); });
}

espalier_code espalier_transaction_only_if_absent(espalier_transaction* transaction,
                                                  espalier_bytes map, espalier_bytes key) {
  return add_step(__func__, transaction, map, key, {},
                  [&](auto& to) { to.only_if_absent(c::view(map), c::view(key)); });
}

espalier_code espalier_transaction_only_if_present(espalier_transaction* transaction,
                                                   espalier_bytes map, espalier_bytes key) {
  return add_step(__func__, transaction, map, key, {},
                  [&](auto& to) { to.only_if_present(c::view(map), c::view(key)); });
}

espalier_code espalier_transaction_only_if_value(espalier_transaction* transaction,
                                                 espalier_bytes map, espalier_bytes key,
                                                 espalier_bytes value) {
  return add_step(__func__, transaction, map, key, value,
                  [&](auto& to) { to.only_if_value(c::view(map), c::view(key), c::view(value)); });
}

espalier_code espalier_transaction_only_if_version(espalier_transaction* transaction,
                                                   espalier_bytes map, espalier_bytes key,
                                                   espalier_version_number version) {
  return add_step(__func__, transaction, map, key, {},
                  [&](auto& to) { to.only_if_version(c::view(map), c::view(key), version); });
}

espalier_code espalier_transact(espalier_store* store, espalier_transaction* transaction,
                                espalier_version_number* version) {
  return c::run(__func__, {c::given(store, "store"), c::given(transaction, "transaction")}, [&] {
    return do_transaction(*transaction, version,
                          [&] { return store->store.transact(transaction->transaction); });
  });
}

espalier_code espalier_transact_once(espalier_store* store, espalier_transaction* transaction,
                                     espalier_numbered_client* client,
                                     espalier_version_number* version) {
  return c::run(
      __func__,
      {c::given(store, "store"), c::given(transaction, "transaction"), c::given(client, "client")},
      [&] {
        espalier::NumberedClient numbered{client->id, client->next};
        const auto done = do_transaction(*transaction, version, [&] {
          return store->store.transact(transaction->transaction, numbered);
        });
        client->next = numbered.next;
        return done;
      });
}

espalier_code espalier_transaction_found(const espalier_transaction* transaction, size_t number,
                                         espalier_item* item, uint32_t* found) {
  return c::run(
      __func__,
      {c::given(transaction, "transaction"), c::given(item, "item"), c::given(found, "found")},
      [&]() -> Result<void> {
        const espalier::Transacted& done = transaction->done;
        if (!done.found_is_known) return espalier::fail(Code::outdated);
        if (number >= done.found.size()) {
          return espalier::fail(Code::invalid_argument,
                                static_cast<std::uint32_t>(done.found.size()));
        }
        const auto& read = done.found[number];
        item->key.clear();
        item->value = read ? read->value : std::string();
        item->version = read ? read->version : 0;
        *found = read ? 1 : 0;
        return {};
      });
}

espalier_code espalier_numbered_client_create(espalier_store* store,
                                              espalier_numbered_client* client) {
  return c::run(__func__, {c::given(store, "store"), c::given(client, "client")},
                [&]() -> Result<void> {
                  const auto made = store->store.make_numbered_client();
                  if (!made) return std::unexpected(made.error());
                  *client = {made->id, made->next};
                  return {};
                });
}

espalier_code espalier_numbered_client_forget(espalier_store* store,
                                              const espalier_numbered_client* client) {
  return c::run(__func__, {c::given(store, "store"), c::given(client, "client")}, [&] {
    return store->store.forget_numbered_client({client->id, client->next});
  });
}

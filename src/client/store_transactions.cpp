// SPDX-License-Identifier: Apache-2.0
// Transactions over the maps of a store.
#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "catalog/await_records.hpp"
#include "catalog/calls.hpp"
#include "catalog/catalog.hpp"
#include "catalog/redo_sink.hpp"
#include "catalog/unflushed_age.hpp"
#include "channel/objects.hpp"
#include "channel/public_call.hpp"
#include "client/numbered_transactions.hpp"
#include "client/store_impl.hpp"
#include "espalier/transaction.hpp"
#include "store/numbered_clients.hpp"
#include "store/transaction_request.hpp"

namespace espalier {

Transaction::Step& Transaction::add(StepKind kind, std::string_view map, std::string_view key) {
  const auto known = std::ranges::find(maps_, map);
  const auto number = static_cast<std::size_t>(known - maps_.begin());
  if (known == maps_.end()) {
    too_many_maps_ = too_many_maps_ || maps_.size() == store::kTransactionKeysMax;
    if (!too_many_maps_) maps_.emplace_back(map);
  }
  Step& step = steps_.emplace_back();
  step.kind = kind;
  step.map = static_cast<std::uint8_t>(number);
  step.key = key;
  return step;
}

Transaction& Transaction::get(std::string_view map, std::string_view key) {
  add(StepKind::get, map, key);
  return *this;
}

Transaction& Transaction::put(std::string_view map, std::string_view key, std::string_view value) {
  add(StepKind::put, map, key).value = value;
  return *this;
}

Transaction& Transaction::erase(std::string_view map, std::string_view key) {
  add(StepKind::erase, map, key);
  return *this;
}

Transaction& Transaction::only_if_absent(std::string_view map, std::string_view key) {
  add(StepKind::check, map, key).condition = ConditionKind::absent;
  return *this;
}

Transaction& Transaction::only_if_present(std::string_view map, std::string_view key) {
  add(StepKind::check, map, key).condition = ConditionKind::present;
  return *this;
}

Transaction& Transaction::only_if_value(std::string_view map, std::string_view key,
                                        std::string_view value) {
  Step& step = add(StepKind::check, map, key);
  step.condition = ConditionKind::value;
  step.value = value;
  return *this;
}

Transaction& Transaction::only_if_version(std::string_view map, std::string_view key,
                                          Version version) {
  Step& step = add(StepKind::check, map, key);
  step.condition = ConditionKind::version;
  step.version = version;
  return *this;
}

// Keeps the memory for the next transaction.
void Transaction::clear() {
  maps_.clear();
  steps_.clear();
  too_many_maps_ = false;
}

namespace {

Result<Transacted> transact_here(catalog::Catalog& catalog, const object_calls::Transact& asked,
                                 std::size_t gets) {
  auto objects = store::read_transaction(catalog, asked);
  if (!objects) return std::unexpected(objects.error().error);
  memory::VersionClock& clock = **store::clock_of(*objects);
  for (const store::ObjectSteps& each : *objects) catalog::wait_for_disk(*each.object);
  Transacted result;
  result.found.reserve(gets);  // allocated now: after execution nothing may fail
  auto done = store::transact(*catalog.store(), *objects);
  if (!done) return std::unexpected(done.error());
  if (!store::wait_for_release(clock, done->wait_for)) return std::unexpected(catalog::kRecordLost);
  if (done->refused) return std::unexpected(*done->refused);
  if (done->failed_step) return fail(Code::condition_failed, *done->failed_step);
  result.version = done->version;
  for (catalog::StepFound& one : done->found) {
    result.found.push_back(one.found ? std::optional(Found{std::move(one.value), one.version})
                                     : std::nullopt);
  }
  return result;
}

// It was executed, and must not be reported as failed, but there is no memory for its reads.
constexpr Error kAnswerLost{Code::system, 0, ENOMEM};

Result<Transacted> read_answer(const channel::Reply& reply, std::size_t gets) {
  const auto answer = wire::read_reply<object_calls::TransactReply>(reply.header, reply.payload);
  if (!answer) return fail(Code::corrupt);
  auto found = client::read_found(answer->found, gets);
  if (!found) return std::unexpected(found.error());
  return Transacted{answer->version, *std::move(found)};
}

// For a node without numbers.
Result<Transacted> transact_unnumbered(channel::Channel& channel,
                                       const client::TransactionBytes& asked) {
  const wire::RequestMessage<object_calls::Transact> message({asked.objects, asked.bytes});
  try {
    const auto answer = channel.ask(message.get());
    if (!answer) return std::unexpected(answer.error().error);
    return read_answer(answer->reply, asked.gets);
  } catch (const std::bad_alloc&) {
    if (!asked.writes) throw;
    return std::unexpected(kAnswerLost);
  }
}

Result<Transacted> transact_by(client::StoreImpl& store, const Transaction& transaction) {
  const auto asked = client::bytes_of(transaction);
  if (!asked) return std::unexpected(asked.error());
  channel::Channel& channel = *store.channel();
  if (catalog::Catalog* const own = channel.own_objects()) {
    return transact_here(*own, {asked->objects, asked->bytes}, asked->gets);
  }
  client::OwnNumbers* const numbers = store.own_numbers();
  if (numbers == nullptr) return transact_unnumbered(channel, *asked);
  auto done = client::transact_with_own_number(channel, *numbers, *asked);
  const bool knows_none = !done && done.error().code == Code::unsupported && !numbers->are_known();
  return knows_none ? transact_unnumbered(channel, *asked) : done;
}

// Whether the number is used up: false if the transaction may still be executed, or retried.
bool ends_number(const Result<Transacted>& done) {
  if (done) return true;
  switch (done.error().code) {
    case Code::condition_failed:
    case Code::not_found:
    case Code::unsupported:
    case Code::invalid_argument:
    case Code::key_too_long:
    case Code::value_too_long:
    case Code::wrong_shard:
    case Code::exhausted: return true;
    default: return false;
  }
}

Result<std::uint64_t> ask_for_client(client::StoreImpl& store,
                                     const object_calls::TransactionClient& asked) {
  channel::Channel& channel = *store.channel();
  catalog::Catalog* const own = channel.own_objects();
  if (own == nullptr) {
    const auto reply = channel::ask(channel, asked);
    if (!reply) return std::unexpected(reply.error());
    return reply->client;
  }
  auto& clients = channel.own_parts()->of<store::NumberedClients>();
  if (asked.client == 0) return clients.make({}, true, own->redo());
  const auto forgotten = clients.forget(asked.client, {}, own->redo());
  if (!forgotten) return std::unexpected(forgotten.error());
  const auto durable = catalog::await_record(own->redo(), *forgotten);
  if (!durable) return std::unexpected(durable.error());
  return 0;
}

}  // namespace

Result<Transacted> Store::transact(const Transaction& transaction) {
  return client::call(*impl_, [&] { return transact_by(*impl_, transaction); });
}

Result<Transacted> Store::transact(const Transaction& transaction, NumberedClient& client) {
  const auto transact_once = [&]() -> Result<Transacted> {
    const auto asked = client::bytes_of(transaction);
    if (!asked) return std::unexpected(asked.error());
    channel::Channel& channel = *impl_->channel();
    if (channel.own_objects() != nullptr) {
      return client::transact_numbered_here(channel, *asked, client);
    }
    return client::transact_numbered(channel, *asked, client);
  };
  auto done = client::call(*impl_, transact_once);
  if (ends_number(done)) ++client.next;
  return done;
}

Result<NumberedClient> Store::make_numbered_client() {
  const auto made = client::call(*impl_, [&] {
    return ask_for_client(*impl_,
                          {static_cast<std::uint32_t>(object_calls::ClientWish::made_kept), 0});
  });
  if (!made) return std::unexpected(made.error());
  return NumberedClient{*made, 1};
}

Result<void> Store::forget_numbered_client(const NumberedClient& client) {
  if (client.id == 0) return fail(Code::invalid_argument);
  const auto done = client::call(*impl_, [&] {
    return ask_for_client(
        *impl_, {static_cast<std::uint32_t>(object_calls::ClientWish::forgotten), client.id});
  });
  return done ? Result<void>() : std::unexpected(done.error());
}

}  // namespace espalier

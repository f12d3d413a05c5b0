// SPDX-License-Identifier: Apache-2.0
// Transactions over the maps of a store.
#include <algorithm>
#include <cerrno>
#include <limits>
#include <new>
#include <utility>

#include "base/bytes.hpp"
#include "catalog/calls.hpp"
#include "catalog/catalog.hpp"
#include "catalog/redo_sink.hpp"
#include "catalog/unflushed_age.hpp"
#include "channel/public_call.hpp"
#include "client/store_impl.hpp"
#include "espalier/transaction.hpp"
#include "store/transaction_request.hpp"
#include "wire/payload_reader.hpp"

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

void Transaction::clear() { *this = Transaction(); }

namespace {

// Errors: invalid_argument, key_too_long, value_too_long: what no message can say.
Result<std::string> request_bytes(const Transaction& transaction) {
  if (transaction.too_many_maps() || transaction.steps().empty()) {
    return fail(Code::invalid_argument);
  }
  std::string bytes;
  for (const std::string& name : transaction.maps()) {
    if (!catalog::Catalog::is_name(name)) return fail(Code::invalid_argument);
    bytes += base::bytes_of(static_cast<std::uint16_t>(name.size()));
    bytes += name;
  }
  for (const Transaction::Step& step : transaction.steps()) {
    if (step.key.empty() || step.key.size() > std::numeric_limits<std::uint16_t>::max()) {
      return fail(Code::key_too_long);
    }
    if (step.value.size() > store::kTransactionBytesMax) return fail(Code::value_too_long);
    object_calls::StepHead head{};
    head.version = step.version;
    head.value_bytes = static_cast<std::uint32_t>(step.value.size());
    head.key_bytes = static_cast<std::uint16_t>(step.key.size());
    head.object = step.map;
    head.kind = static_cast<std::uint8_t>(step.kind);
    head.condition = static_cast<std::uint8_t>(step.condition);
    bytes += base::bytes_of(head);
    bytes += step.key;
    bytes += step.value;
  }
  if (bytes.size() > object_calls::kTransactionMessageMax) return fail(Code::invalid_argument);
  return bytes;
}

Result<Transacted> transact_here(catalog::Catalog& catalog, const object_calls::Transact& asked,
                                 std::size_t gets) {
  auto objects = store::read_transaction(catalog, asked);
  if (!objects) return std::unexpected(objects.error().error);
  memory::VersionClock& clock = **store::clock_of(*objects);
  for (const store::ObjectSteps& each : *objects) catalog::wait_for_disk(*each.object);
  Transacted result;
  result.found.reserve(gets);  // once it is done, nothing may fail
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

// It was done, and nobody may say that it was not: there is no memory for what it has found.
constexpr Error kAnswerLost{Code::system, 0, ENOMEM};

Result<Transacted> read_answer(const channel::Reply& reply, std::size_t gets) {
  const auto answer = wire::read_reply<object_calls::TransactReply>(reply.header, reply.payload);
  if (!answer) return fail(Code::corrupt);
  Transacted result{answer->version, {}};
  wire::PayloadReader reader(answer->found);
  for (std::size_t i = 0; i < gets; ++i) {
    const auto head = reader.take<object_calls::FoundHead>();
    const std::string_view value = reader.text(head.value_bytes);
    if (!reader.good() || head.found > 1) return fail(Code::corrupt);
    result.found.push_back(head.found == 1 ? std::optional(Found{std::string(value), head.version})
                                           : std::nullopt);
  }
  if (!reader.complete()) return fail(Code::corrupt);
  return result;
}

Result<Transacted> transact_by(channel::Channel& channel, const Transaction& transaction) {
  const auto bytes = request_bytes(transaction);
  if (!bytes) return std::unexpected(bytes.error());
  const object_calls::Transact asked{static_cast<std::uint32_t>(transaction.maps().size()), *bytes};
  const auto is_get = [](const Transaction::Step& step) {
    return step.kind == Transaction::StepKind::get;
  };
  const auto gets = static_cast<std::size_t>(std::ranges::count_if(transaction.steps(), is_get));
  if (catalog::Catalog* const own = channel.own_objects()) return transact_here(*own, asked, gets);
  const wire::RequestMessage<object_calls::Transact> message(asked);
  const auto answer = channel.ask(message.get());
  if (!answer) return std::unexpected(answer.error().error);
  try {
    return read_answer(answer->reply, gets);
  } catch (const std::bad_alloc&) {
    if (answer->reply.header.version == 0) throw;  // it has written nothing
    return std::unexpected(kAnswerLost);
  }
}

}  // namespace

Result<Transacted> Store::transact(const Transaction& transaction) {
  return client::call(*impl_, [&] { return transact_by(*impl_->channel(), transaction); });
}

}  // namespace espalier

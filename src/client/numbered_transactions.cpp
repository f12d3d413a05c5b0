// SPDX-License-Identifier: Apache-2.0
#include "client/numbered_transactions.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "catalog/await_records.hpp"
#include "catalog/calls.hpp"
#include "catalog/catalog.hpp"
#include "catalog/unflushed_age.hpp"
#include "store/numbered_clients.hpp"
#include "store/store_parts.hpp"
#include "store/transaction_request.hpp"

namespace espalier::client {
namespace {

// By then a chain has another head, and a restarted node serves.
constexpr std::uint64_t kRepeatForNs = 10'000'000'000;
constexpr int kRepeatPauseMs = 5;

// There is no memory for an answer, and the transaction may have been executed.
constexpr Error kNoRoomForAnswer{Code::system, 0, ENOMEM};

/// An answer, or the reason why there is none.
struct Asked {
  std::expected<channel::Answer, channel::Refusal> answer;
  bool lost = false;  // it was sent, and no answer was read: it may have been executed

  [[nodiscard]] Error error() const { return answer.error().error; }
};

// Whether another connection may answer it. A node reports the code system when its log has failed:
// a chain then gets another head.
bool may_be_repeated(Code code) {
  return code == Code::connection_lost || code == Code::system ||
         code == Code::too_many_participants;
}

std::expected<channel::Answer, channel::Refusal> ask_once(channel::Channel& channel,
                                                          const wire::CallMessage& request) {
  try {
    return channel.ask(request);
  } catch (const std::bad_alloc&) {  // it may have been sent
    return std::unexpected(channel::Refusal(kNoRoomForAnswer));
  }
}

template <class Request>
Asked ask_until_answered(channel::Channel& channel, const Request& asked) {
  const wire::RequestMessage<Request> message(asked);
  Asked last{ask_once(channel, message.get()), false};
  for (const base::Stopwatch watch; !last.answer; last.answer = ask_once(channel, message.get())) {
    const Error error = last.error();
    last.lost = last.lost || error.code == Code::connection_lost || error == kNoRoomForAnswer;
    const bool again = last.lost && may_be_repeated(error.code);
    if (!again || watch.elapsed_ns() >= kRepeatForNs) break;
    ::poll(nullptr, 0, kRepeatPauseMs);
  }
  return last;
}

// Whether the error implies that the transaction was not executed, and will not be, whatever is
// still under way. For a request that was sent once, every error of the node implies it.
bool is_final(const Asked& asked) {
  switch (asked.error().code) {
    case Code::connection_lost:
    case Code::system:
    case Code::corrupt:
    case Code::forked: return false;
    case Code::outdated:
    case Code::not_permitted:
    case Code::out_of_memory:
    case Code::busy:
    case Code::unsupported:  // for example a node without numbers, which has the address now
    case Code::too_many_participants: return !asked.lost;
    default: return true;
  }
}

Result<Transacted> read_once(const Asked& asked, std::size_t gets) {
  if (!asked.answer) {
    const Error error = asked.error();
    const bool says_so = error.code == Code::connection_lost || error == kNoRoomForAnswer;
    const bool as_it_is = is_final(asked) || !asked.lost || says_so;
    return std::unexpected(as_it_is ? error : Error{Code::connection_lost});
  }
  const channel::Reply& answered = asked.answer->reply;
  const auto reply = wire::read_reply<object_calls::OnceReply>(answered.header, answered.payload);
  if (!reply) return fail(Code::corrupt);
  Transacted result{reply->version, {}, reply->whole};
  if (!reply->whole) {
    result.found.resize(gets);
    return result;
  }
  auto found = read_found(reply->found, gets);
  if (!found) return std::unexpected(found.error());
  result.found = *std::move(found);
  return result;
}

Result<Transacted> read_or_lost(const Asked& asked, std::size_t gets) {
  try {
    return read_once(asked, gets);
  } catch (const std::bad_alloc&) {
    if (asked.answer && asked.answer->reply.header.version == 0) throw;  // it has written nothing
    return std::unexpected(kNoRoomForAnswer);
  }
}

object_calls::TransactOnce once(const TransactionBytes& asked, const OwnNumbers::Number& number) {
  return {asked.objects, {number.client, number.number, number.acknowledged}, asked.bytes};
}

OwnNumbers::Number number_of(const NumberedClient& client) {
  return {client.id, client.next, client.next - 1};
}

// Matches the node's handler (engine/transactions.cpp).
Result<Transacted> result_of(catalog::ClientFact fact, std::uint64_t version,
                             std::string_view bytes, std::size_t gets) {
  if (fact == catalog::ClientFact::condition) {
    return fail(Code::condition_failed, static_cast<std::uint32_t>(version));
  }
  Transacted result{version, {}, fact == catalog::ClientFact::done};
  if (fact != catalog::ClientFact::done) {
    result.found.resize(gets);
    return result;
  }
  auto found = read_found(bytes, gets);
  if (!found) return std::unexpected(found.error());
  result.found = *std::move(found);
  return result;
}

Result<Transacted> read_result(catalog::ClientFact fact, std::uint64_t version,
                               std::string_view bytes, std::size_t gets) {
  try {
    return result_of(fact, version, bytes, gets);
  } catch (const std::bad_alloc&) {
    if (version == 0) throw;  // it has written nothing
    return std::unexpected(kNoRoomForAnswer);
  }
}

Result<Transacted> run_here(catalog::Catalog& catalog, store::ClientTurn& turn,
                            const TransactionBytes& asked) {
  const auto refuse = [&](const Error& error) -> Result<Transacted> {
    if (store::is_refused_for_good(error)) turn.refuse(error);
    return std::unexpected(error);
  };
  auto objects = store::read_transaction(catalog, {asked.objects, asked.bytes});
  if (!objects) return refuse(objects.error().error);
  memory::VersionClock& clock = **store::clock_of(*objects);
  for (const store::ObjectSteps& each : *objects) catalog::wait_for_disk(*each.object);
  std::string bytes;
  const auto done = store::transact(*catalog.store(), *objects, {.answer = &bytes, .turn = &turn});
  if (!done) return refuse(done.error());
  if (!store::wait_for_release(clock, done->wait_for)) return std::unexpected(catalog::kRecordLost);
  const auto durable = catalog::await_record(catalog.redo(), done->sequence);
  if (!durable) return std::unexpected(durable.error());
  if (done->refused) return refuse(*done->refused);
  if (done->failed_step) return fail(Code::condition_failed, *done->failed_step);
  return read_result(catalog::ClientFact::done, done->version, bytes, asked.gets);
}

// The request wrote nothing.
std::unexpected<Error> refused_without_number(const Error& error) {
  return error == kNoRoomForAnswer ? fail(Code::out_of_memory) : std::unexpected<Error>(error);
}

// A transaction that writes nothing needs no number: a retry reads the state of that time.
Result<Transacted> transact_without_number(channel::Channel& channel,
                                           const TransactionBytes& asked) {
  const Asked done =
      ask_until_answered(channel, object_calls::Transact{asked.objects, asked.bytes});
  if (!done.answer) return refused_without_number(done.error());
  const channel::Reply& answered = done.answer->reply;
  const auto reply =
      wire::read_reply<object_calls::TransactReply>(answered.header, answered.payload);
  if (!reply) return fail(Code::corrupt);
  auto found = read_found(reply->found, asked.gets);
  if (!found) return std::unexpected(found.error());
  return Transacted{reply->version, *std::move(found)};
}

}  // namespace

Result<Transacted> transact_numbered_here(channel::Channel& channel, const TransactionBytes& asked,
                                          const NumberedClient& client) {
  catalog::Catalog& catalog = *channel.own_objects();
  auto& clients = channel.own_parts()->of<store::NumberedClients>();
  const object_calls::TransactOnce request = once(asked, number_of(client));
  if (const auto fault = request.fault()) return fail(Code::invalid_argument, fault->detail);
  auto begun = clients.begin_waiting(store::number_of(request), {});
  if (!begun) return std::unexpected(begun.error());
  if (begun->answer == nullptr) return run_here(catalog, begun->turn, asked);
  const store::KeptAnswer& known = *begun->answer;
  if (!store::wait_for_release(known, catalog.redo())) {
    return std::unexpected(catalog::kRecordLost);
  }
  if (known.fact == catalog::ClientFact::invalid) return std::unexpected(known.error);
  return read_result(known.fact, known.version, known.bytes, asked.gets);
}

Result<Transacted> transact_numbered(channel::Channel& channel, const TransactionBytes& asked,
                                     const NumberedClient& client) {
  const object_calls::TransactOnce request = once(asked, number_of(client));
  if (const auto fault = request.fault()) return fail(Code::invalid_argument, fault->detail);
  Asked done = ask_until_answered(channel, request);
  // The number may have been executed, and the caller manages it: report the error.
  const bool unknown = !done.answer && done.error().code == Code::outdated;
  return unknown ? std::unexpected(done.error()) : read_or_lost(done, asked.gets);
}

Result<Transacted> transact_with_own_number(channel::Channel& channel, OwnNumbers& numbers,
                                            const TransactionBytes& asked) {
  if (!asked.writes) return transact_without_number(channel, asked);
  for (int clients = 0;; ++clients) {
    const auto number = numbers.begin(channel);
    if (!number) return std::unexpected(number.error());
    struct Ended {
      OwnNumbers& numbers;
      const OwnNumbers::Number& number;
      ~Ended() { numbers.end(number); }
    };
    const Ended ended{numbers, *number};
    const Asked done = ask_until_answered(channel, once(asked, *number));
    const bool unknown = !done.answer && done.error().code == Code::outdated;
    if (unknown) numbers.forget(number->client);
    // It was sent once, and refused: a transaction under a new client id is the first that may be
    // executed.
    if (unknown && !done.lost) {
      if (clients < 2) continue;
      return fail(Code::busy);  // so many other clients that each id is forgotten immediately
    }
    auto result = read_or_lost(done, asked.gets);
    // It was executed, and its reads are no longer known.
    const bool is_whole = !result || result->found_is_known || asked.gets == 0;
    return is_whole ? result : std::unexpected(kNoRoomForAnswer);
  }
}

// --- numbers of a store's own --------------------------------------------------------------------

Result<std::uint64_t> OwnNumbers::known_client(channel::Channel& channel) {
  if (unsupported_) return fail(Code::unsupported);
  if (client_ != 0) return client_;
  // If the answer is lost, the client id is unused, and the node eventually forgets it.
  const Asked made = ask_until_answered(channel, object_calls::TransactionClient{});
  if (!made.answer) {
    unsupported_ = made.error().code == Code::unsupported;
    return refused_without_number(made.error());
  }
  const channel::Reply& answered = made.answer->reply;
  const auto reply = wire::read_reply<object_calls::ClientReply>(answered.header, answered.payload);
  if (!reply || reply->client == 0) return fail(Code::corrupt);
  client_ = reply->client;
  next_ = 1;
  in_flight_.clear();
  return client_;
}

Result<OwnNumbers::Number> OwnNumbers::begin(channel::Channel& channel) {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] {
    return in_flight_.empty() || next_ - *in_flight_.begin() < catalog::kClientNumbersMax;
  });
  const auto client = known_client(channel);
  if (!client) return std::unexpected(client.error());
  in_flight_.insert(next_);
  return Number{*client, next_++, *in_flight_.begin() - 1};
}

void OwnNumbers::end(const Number& number) noexcept {
  const std::lock_guard lock(mutex_);
  if (number.client == client_) in_flight_.erase(number.number);
  ended_.notify_all();
}

void OwnNumbers::forget(std::uint64_t client) noexcept {
  const std::lock_guard lock(mutex_);
  if (client_ != client) return;
  client_ = 0;
  in_flight_.clear();
  ended_.notify_all();
}

}  // namespace espalier::client

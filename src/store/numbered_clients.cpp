// SPDX-License-Identifier: Apache-2.0
#include "store/numbered_clients.hpp"

#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <span>

#include "base/assert.hpp"
#include "base/durable_mark.hpp"
#include "base/system_error.hpp"
#include "catalog/object.hpp"
#include "memory/version_clock.hpp"
#include "store/planted_store_bugs.hpp"

namespace espalier::store {
namespace {

using catalog::ClientFact;
using catalog::ClientRecord;

constexpr std::uint32_t kNotKnown = 1;         // details of Code::outdated
constexpr std::uint32_t kWasAcknowledged = 2;  // likewise
constexpr int kCopiedTogether = 32;            // numbers, under a client's lock
constexpr std::chrono::milliseconds kEndedAgain{50};

Result<catalog::RedoRoom> reserve_fact(catalog::RedoSink* sink, const ClientRecord& record,
                                       std::string_view bytes) {
  auto room = catalog::RedoRoom::reserve(sink, catalog::client_record_bytes(bytes.size()));
  if (!room || !*room) return room;
  std::ranges::fill(room->bytes(), std::byte{0});
  catalog::write_client_record(room->bytes(), record, bytes);
  return room;
}

ClientRecord fact_of(std::uint64_t client, ClientFact fact) {
  ClientRecord record{};
  record.client = client;
  record.fact = static_cast<std::uint8_t>(fact);
  return record;
}

// The record of the client itself.
ClientRecord known_record(const ClientNumbers& client) {
  ClientRecord record = fact_of(client.id, ClientFact::known);
  record.acknowledged = client.acknowledged;
  record.version = client.kept ? 1 : 0;
  return record;
}

ClientRecord number_record(const ClientNumbers& client, std::uint64_t number,
                           const KeptAnswer& answer) {
  ClientRecord record = fact_of(client.id, answer.fact);
  record.number = number;
  record.acknowledged = client.acknowledged;
  record.request = answer.request;
  record.version = answer.version;
  return record;
}

Result<std::uint64_t> draw_client() {
  std::uint64_t drawn = 0;
  while (drawn == 0) {
    if (::getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) return base::refused_by_system();
  }
  return drawn;
}

}  // namespace

// Reads `failed` first: what was released before the failure counts.
KeptAnswer::Release KeptAnswer::release(catalog::RedoSink* sink) const {
  if (sink != nullptr && sequence != 0) {
    const bool failed = sink->mark().failed();
    if (sink->mark().released() < sequence) return failed ? Release::lost : Release::waits;
  }
  if (const auto of = object.lock()) {
    memory::VersionClock& clock = *of->transaction_clock();
    const bool failed = clock.failed();
    if (clock.released_now() < wait_for) return failed ? Release::lost : Release::waits;
  }
  return Release::released;
}

// --- one client ----------------------------------------------------------------------------------

void ClientNumbers::count(std::size_t more, std::size_t less) noexcept {
  for (KeptBytes* const kept_bytes : {of_principal.get(), of_all.get()}) {
    kept_bytes->bytes += more;
    kept_bytes->bytes -= less;
  }
}

// A running number stays: its turn erases it.
void ClientNumbers::acknowledge(std::uint64_t up_to) noexcept {
  if (up_to <= acknowledged) return;
  acknowledged = up_to;
  for (auto at = numbers.begin(); at != numbers.end() && at->first <= up_to;) {
    if (at->second.runs) {
      ++at;
      continue;
    }
    count(0, at->second.answer.bytes.size());
    at = numbers.erase(at);
  }
}

void ClientNumbers::forget() noexcept {
  forgotten = true;
  acknowledge(std::numeric_limits<std::uint64_t>::max());
}

ClientTurn::~ClientTurn() {
  if (client_ == nullptr) return;
  const std::lock_guard lock(client_->mutex);
  client_->numbers.erase(asked_.number);
  --client_->running;
  client_->ended.notify_all();
}

// Not a reservation: concurrent turns may all get true, and then a few answers exceed the bound.
bool ClientTurn::may_keep(std::size_t bytes) const {
  return bytes <= catalog::kClientBytesMax &&
         client_->of_principal->bytes.load() + bytes <= NumberedClients::kBytesOfPrincipalMax &&
         client_->of_all->bytes.load() + bytes <= NumberedClients::kBytesMax;
}

void ClientTurn::refuse(const Error& error) noexcept {
  if (client_ == nullptr) return;
  KeptAnswer answer;
  answer.error = error;
  const std::shared_ptr<ClientNumbers> client = std::move(client_);
  const std::lock_guard lock(client->mutex);
  end(*client, std::move(answer));
}

void ClientTurn::end(ClientNumbers& client, KeptAnswer&& answer) noexcept {
  const auto at = client.numbers.find(asked_.number);
  ESPALIER_ASSERT(at != client.numbers.end() && at->second.runs);
  --client.running;
  if (asked_.number <= client.acknowledged) {
    client.numbers.erase(at);
  } else {
    answer.request = asked_.request;
    client.count(answer.bytes.size(), 0);
    at->second = {false, std::move(answer)};
  }
  client.ended.notify_all();
}

// --- all of them ---------------------------------------------------------------------------------

std::size_t NumberedClients::size() const {
  const std::lock_guard lock(mutex_);
  return clients_.size();
}

std::shared_ptr<ClientNumbers> NumberedClients::find(std::uint64_t client) const {
  const std::lock_guard lock(mutex_);
  const auto at = clients_.find(client);
  return at != clients_.end() ? at->second : nullptr;
}

std::shared_ptr<ClientNumbers> NumberedClients::add(std::uint64_t client,
                                                    std::string_view principal, bool kept) {
  auto of = principals_.find(principal);
  if (of == principals_.end()) of = principals_.emplace(principal, Principal()).first;
  const std::shared_ptr<ClientNumbers> made(
      new ClientNumbers{client, std::string(principal), kept, of->second.kept, of_all_});
  made->heard = ++heard_;
  clients_.emplace(client, made);
  ++of->second.clients;
  return made;
}

void NumberedClients::take_away(const ClientNumbers& client) noexcept {
  const auto of = principals_.find(client.principal);
  ESPALIER_ASSERT(of != principals_.end());
  if (--of->second.clients == 0) principals_.erase(of);
  clients_.erase(client.id);  // last: this may destroy the client
}

Result<std::uint64_t> NumberedClients::forget_one(ClientNumbers& client, catalog::RedoSink* sink) {
  std::uint64_t sequence = 0;
  auto room = reserve_fact(sink, fact_of(client.id, ClientFact::forgotten), {});
  if (!room) return std::unexpected(room.error());
  {
    const std::lock_guard lock(client.mutex);
    if (client.running != 0) return fail(Code::busy, kRuns);
    client.forget();
    sequence = room->hand_over();
  }
  take_away(client);
  return sequence;
}

// Prefers clients whose programs do not keep their ids.
std::shared_ptr<ClientNumbers> NumberedClients::least_heard(std::string_view principal) const {
  std::shared_ptr<ClientNumbers> least;
  for (const auto& [id, client] : clients_) {
    if (client->principal != principal) continue;
    const std::lock_guard lock(client->mutex);
    if (client->running != 0) continue;
    const bool sooner = least == nullptr || (least->kept && !client->kept) ||
                        (least->kept == client->kept && client->heard < least->heard);
    if (sooner) least = client;
  }
  return least;
}

Result<void> NumberedClients::make_room(std::string_view principal, catalog::RedoSink* sink) {
  const auto own = principals_.find(principal);
  const bool own_full = own != principals_.end() && own->second.clients >= kClientsOfPrincipalMax;
  if (!own_full && clients_.size() < kClientsMax) return {};
  std::string of(principal);
  if (!own_full) {
    const auto fewer = [](const auto& one, const auto& other) {
      return one.second.clients < other.second.clients;
    };
    of = std::ranges::max_element(principals_, fewer)->first;
  }
  const auto least = least_heard(of);
  if (least == nullptr) return fail(Code::busy, kRuns);
  const auto forgotten = forget_one(*least, sink);
  return forgotten ? Result<void>() : std::unexpected(forgotten.error());
}

Result<std::uint64_t> NumberedClients::make(std::string_view principal, bool kept,
                                            catalog::RedoSink* sink) {
  if (principal.size() > catalog::kClientBytesMax) return fail(Code::invalid_argument);
  const std::lock_guard lock(mutex_);
  auto id = draw_client();
  while (id && clients_.contains(*id)) id = draw_client();
  if (!id) return id;
  // Both records have room before another client is evicted.
  ClientRecord known = fact_of(*id, ClientFact::known);
  known.version = kept ? 1 : 0;
  auto room = reserve_fact(sink, known, principal);
  if (!room) return std::unexpected(room.error());
  if (auto place = make_room(principal, sink); !place) return std::unexpected(place.error());
  add(*id, principal, kept);
  room->hand_over();
  return id;
}

Result<std::uint64_t> NumberedClients::forget(std::uint64_t client, std::string_view principal,
                                              catalog::RedoSink* sink) {
  const std::lock_guard lock(mutex_);
  const auto at = clients_.find(client);
  if (at == clients_.end() || at->second->principal != principal) {
    return fail(Code::outdated, kNotKnown);
  }
  const std::shared_ptr<ClientNumbers> held = at->second;
  return forget_one(*held, sink);
}

Result<NumberedClients::Begun> NumberedClients::begin(const RequestNumber& asked,
                                                      std::string_view principal) {
  ESPALIER_ASSERT(asked.number > asked.acknowledged);
  std::shared_ptr<ClientNumbers> client = find(asked.client);
  if (client == nullptr && planted(Bug::unknown_client_runs)) {
    const std::lock_guard lock(mutex_);
    client = add(asked.client, principal, false);
  }
  if (client == nullptr || client->principal != principal) return fail(Code::outdated, kNotKnown);
  client->heard = ++heard_;
  const std::lock_guard lock(client->mutex);
  if (client->forgotten) return fail(Code::outdated, kNotKnown);
  client->acknowledge(asked.acknowledged);
  if (asked.number <= client->acknowledged) return fail(Code::outdated, kWasAcknowledged);
  if (asked.number - client->acknowledged > catalog::kClientNumbersMax) {
    return fail(Code::exhausted, catalog::kClientNumbersMax);
  }
  const auto [at, is_new] = client->numbers.try_emplace(asked.number);
  ClientNumbers::Number& number = at->second;
  if (is_new) {
    number.runs = true;
    number.answer.request = asked.request;
    ++client->running;
    RequestNumber known = asked;
    known.acknowledged = client->acknowledged;
    return Begun{ClientTurn(client, known), nullptr};
  }
  if (number.answer.request != asked.request) return fail(Code::already_exists);
  if (number.runs) return Begun{};
  return Begun{{}, std::make_unique<KeptAnswer>(number.answer)};
}

Result<NumberedClients::Begun> NumberedClients::begin_waiting(const RequestNumber& asked,
                                                              std::string_view principal) {
  for (;;) {
    auto begun = begin(asked, principal);
    if (!begun || !begun->waits()) return begun;
    const std::shared_ptr<ClientNumbers> client = find(asked.client);
    if (client == nullptr) continue;
    std::unique_lock lock(client->mutex);
    client->ended.wait_for(lock, kEndedAgain, [&] {
      const auto at = client->numbers.find(asked.number);
      return at == client->numbers.end() || !at->second.runs;
    });
  }
}

// --- records -------------------------------------------------------------------------------------

// A higher acknowledgement from the record of another number stays.
void NumberedClients::apply_number(const catalog::ClientRedo& redo) {
  const std::shared_ptr<ClientNumbers> client = find(redo.fields.client);
  if (client == nullptr || planted(Bug::numbers_not_recovered)) return;
  client->heard = ++heard_;
  const std::lock_guard lock(client->mutex);
  client->acknowledge(redo.fields.acknowledged);
  if (redo.fields.number <= client->acknowledged) return;
  KeptAnswer& answer = client->numbers[redo.fields.number].answer;
  client->count(redo.bytes.size(), answer.bytes.size());
  answer = {};
  answer.fact = redo.fact;
  answer.request = redo.fields.request;
  answer.version = redo.fields.version;
  answer.bytes = redo.bytes;
}

Result<void> NumberedClients::apply_redo(std::string_view record) {
  const auto redo = catalog::read_client_record(record);
  if (!redo) return std::unexpected(redo.error());
  if (redo->fact >= ClientFact::done) {
    apply_number(*redo);
    return {};
  }
  const std::lock_guard lock(mutex_);
  const auto at = clients_.find(redo->fields.client);
  if (redo->fact == ClientFact::forgotten) {
    if (at == clients_.end()) return {};
    const std::shared_ptr<ClientNumbers> held = at->second;
    {
      const std::lock_guard of_client(held->mutex);
      held->forget();
    }
    take_away(*held);
    return {};
  }
  // Beyond the bounds, a later record forgets some: a copy was made meanwhile.
  const std::shared_ptr<ClientNumbers> client =
      at != clients_.end() ? at->second
                           : add(redo->fields.client, redo->bytes, redo->fields.version != 0);
  const std::lock_guard of_client(client->mutex);
  client->acknowledge(redo->fields.acknowledged);
  return {};
}

// Copies one client; later records of it are applied over the copy. Running and refused numbers
// have no records.
bool NumberedClients::copy_some(Place& place, const AddRecord& add_record) const {
  std::shared_ptr<ClientNumbers> client;
  {
    const std::lock_guard lock(mutex_);
    const auto at = clients_.lower_bound(place.client);
    if (at == clients_.end()) return false;
    client = at->second;
  }
  if (client->id != place.client) place = {client->id, 0, false};
  const std::lock_guard lock(client->mutex);
  if (!place.begun) add_record(known_record(*client), client->principal);
  place.begun = true;
  int copied = 0;
  for (auto at = client->numbers.upper_bound(place.number); at != client->numbers.end(); ++at) {
    if (copied++ == kCopiedTogether) return true;
    place.number = at->first;
    const KeptAnswer& answer = at->second.answer;
    if (at->second.runs || answer.fact == ClientFact::invalid) continue;
    add_record(number_record(*client, at->first, answer), answer.bytes);
  }
  if (client->id == std::numeric_limits<std::uint64_t>::max()) return false;
  place = {client->id + 1, 0, false};
  return true;
}

}  // namespace espalier::store

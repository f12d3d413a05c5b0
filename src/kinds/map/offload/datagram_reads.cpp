// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/offload/datagram_reads.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "catalog/catalog.hpp"
#include "crypto/datagram_tag.hpp"
#include "crypto/hmac.hpp"
#include "engine/audit_log.hpp"
#include "engine/planted_engine_bugs.hpp"
#include "engine/principal_accounts.hpp"
#include "engine/services.hpp"
#include "engine/serving_gate.hpp"
#include "kinds/map/format/shard.hpp"
#include "store/store_core.hpp"
#include "wire/message.hpp"

namespace espalier::offload {
namespace {

wire::DatagramReply reply_of(const DatagramSession& session, std::uint64_t number,
                             wire::DatagramKind kind, wire::DatagramStatus status) {
  wire::DatagramReply reply{};
  reply.magic = wire::kDatagramMagic;
  reply.version = wire::kDatagramVersion;
  reply.kind = static_cast<std::uint8_t>(kind);
  reply.status = static_cast<std::uint8_t>(status);
  reply.session = session.number;
  reply.number = number;
  return reply;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

DatagramReads::DatagramReads(Services& services, DatagramSessions& sessions, std::uint32_t shard)
    : services_(services),
      sessions_(sessions),
      gate_(services.parts.find<ServingGate>()),
      get_offload_(services.offloads[static_cast<std::uint8_t>(wire::OffloadId::get)]),
      maps_(services, shard),
      gets_(kGets),
      replies_(2 * kGets) {
  ESPALIER_ASSERT(get_offload_ != nullptr && !services.at_device);
  for (std::uint32_t i = 0; i < kGets; ++i) free_gets_.push_back(i);
}

DatagramReads::~DatagramReads() {
  while (step()) continue;
}

void DatagramReads::take(std::span<const std::byte> datagram, const DatagramSource& from,
                         std::uint64_t now_ns) {
  now_ns_ = now_ns;
  const auto request = wire::read_datagram_request(datagram);
  if (!request) return count_drop();
  const auto session = sessions_.find(request->header.session);
  if (session == nullptr || !crypto::is_signed_request(*session->key, datagram)) {
    return count_drop();
  }
  if (!take_checked(session, *request, from)) count_drop();
}

// What somebody else sends again is refused by its number or address, before it counts.
bool DatagramReads::take_checked(const std::shared_ptr<DatagramSession>& session,
                                 const wire::TakenRequest& request, const DatagramSource& from) {
  switch (static_cast<wire::DatagramKind>(request.header.kind)) {
    case wire::DatagramKind::hello: return challenge(*session, request.header, from);
    case wire::DatagramKind::proof: return prove(*session, request, from);
    default: return begin_get(session, request, from);
  }
}

// A hello is good once: one that is sent again from elsewhere has nothing sent there.
bool DatagramReads::challenge(DatagramSession& session, const wire::DatagramRequest& hello,
                              const DatagramSource& from) {
  if (!session.taken.take_new(hello.number) || !may_hello(session)) return false;
  const auto challenge = sessions_.challenge(session, from);
  if (!challenge) return false;
  const auto header =
      reply_of(session, hello.number, wire::DatagramKind::challenge, wire::DatagramStatus::invalid);
  if (!send(session, from, header, *challenge)) return false;
  sessions_.counts.challenged.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// Nor is a proof good again, for the session may have another address since.
bool DatagramReads::prove(DatagramSession& session, const wire::TakenRequest& proof,
                          const DatagramSource& from) {
  const auto challenge = sessions_.challenge(session, from);
  if (!challenge || !crypto::equal_in_secret(bytes_of(proof.key), *challenge)) return false;
  if (!session.taken.take_new(proof.header.number) || !may_hello(session)) return false;
  session.has_proved = true;
  session.source = from;
  return send(session, from,
              reply_of(session, proof.header.number, wire::DatagramKind::proved,
                       wire::DatagramStatus::invalid),
              {});
}

ServedMap* DatagramReads::map_of(DatagramSession& session, const wire::TakenRequest& get,
                                 const DatagramSource& from) {
  const std::uint32_t number = get.header.map;
  if (const auto why = session.access.denied(*get_offload_, get.key, number, services_.catalog())) {
    refuse_access(session, number, from, *why);
    return nullptr;
  }
  ServedMap* const map = maps_.find(number);
  // Without versions a read may see what is not released, whose answer rings keep back.
  if (map == nullptr || !map->keeps_versions()) return nullptr;
  if (map->shard != nullptr && !map->shard->bounds(map->shard->own).has(get.key)) return nullptr;
  return map;
}

// Switches know where nodes begin, and no generations. Whether the one that begins there may answer
// is asked like that of any hint.
wire::Ref DatagramReads::hint_of(const wire::DatagramRequest& get) const {
  const wire::Ref hint{get.hint};
  if (!hint || hint.generation() != 0) return hint;
  const memory::BufferPool& pool = services_.store.pool;
  return wire::Ref::make(hint.offset(),
                         pool.generation_in_use(hint.offset(), memory::BufferKind::node));
}

// As of a request by rings: whoever is refused here need not ask there.
void DatagramReads::refuse_access(const DatagramSession& session, std::uint32_t map,
                                  const DatagramSource& from, const Error& why) noexcept {
  services_.denied.fetch_add(1, std::memory_order_relaxed);
  services_.audit.refused(session.account->name, [&] {
    AuditRecord record;
    record.act = get_offload_->name;
    record.name = session.access.who();
    record.role = session.access.role();
    record.address = "datagram " + fabric::roce::to_text(from);
    const auto entry = services_.catalog().find_any(map);
    record.object = entry != nullptr ? entry->name : "#" + std::to_string(map);
    record.outcome = why;
    return record;
  });
}

bool DatagramReads::begin_get(const std::shared_ptr<DatagramSession>& session,
                              const wire::TakenRequest& get, const DatagramSource& from) {
  const bool proved = session->has_proved && session->source == from;
  if (!proved && !planted(Bug::datagram_to_unproved)) return false;
  if (free_gets_.empty() || !session->taken.take(get.header.number)) return false;
  if (!within_rate(session->share->gets)) return false;
  ServedMap* const map = map_of(*session, get, from);
  if (map == nullptr) return send_to_rings(*session, get.header.number, from);
  const std::uint32_t place = free_gets_.back();
  free_gets_.pop_back();
  Get& begun = gets_[place];
  begun.session = session;
  begun.asked = get.header;
  begun.from = from;
  begun.map = map;
  std::ranges::copy(get.key, begun.key.begin());
  ++map->users;
  begun.walk.op = Op::get;
  begun.walk.tag = place;
  begun.walk.key = {begun.key.data(), get.key.size()};
  try {
    map->submit(begun.walk, *this, hint_of(get.header));
    maps_.begin_walks(*map);
  } catch (const std::bad_alloc&) {
    if (begun.session == nullptr) return true;  // it has been answered
    begun.session = nullptr;
    --map->users;
    free_gets_.push_back(place);
    throw;
  }
  return true;
}

void DatagramReads::done(const Completion& found) {
  Get& get = gets_[found.tag];
  const auto session = std::exchange(get.session, nullptr);
  answer(*session, get, found);
  --get.map->users;
  free_gets_.push_back(static_cast<std::uint32_t>(found.tag));
}

// A session that is over, or a node that may not answer any more, says nothing.
void DatagramReads::answer(const DatagramSession& session, const Get& get,
                           const Completion& found) {
  if (session.over.load(std::memory_order_acquire) || (gate_ != nullptr && !gate_->is_open())) {
    return count_drop();
  }
  if (!found.ok || found.value.size() > wire::kDatagramValueBytesMax) {
    if (!send_to_rings(session, get.asked.number, get.from)) count_drop();
    return;
  }
  auto header = reply_of(session, get.asked.number, wire::DatagramKind::answer,
                         found.found ? wire::DatagramStatus::found : wire::DatagramStatus::absent);
  header.item_version = found.found ? found.version : 0;
  header.read_version = found.read_version;
  const auto value = found.found ? bytes_of(found.value) : std::span<const std::byte>();
  if (!send(session, get.from, header, value)) return count_drop();
  sessions_.counts.answered.fetch_add(1, std::memory_order_relaxed);
}

bool DatagramReads::send_to_rings(const DatagramSession& session, std::uint64_t number,
                                  const DatagramSource& to) {
  if (gate_ != nullptr && !gate_->is_open()) return false;
  const auto header =
      reply_of(session, number, wire::DatagramKind::answer, wire::DatagramStatus::by_ring);
  if (!send(session, to, header, {})) return false;
  sessions_.counts.by_ring.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool DatagramReads::send(const DatagramSession& session, const DatagramSource& to,
                         const wire::DatagramReply& header, std::span<const std::byte> payload) {
  if (ready_ == replies_.size()) return false;
  Reply& reply = replies_[ready_];
  reply.to = to;
  reply.bytes = sizeof header + payload.size();
  std::memcpy(reply.datagram.data(), &header, sizeof header);
  std::ranges::copy(payload, reply.datagram.begin() + sizeof header);
  if (!crypto::sign_reply(*session.key, std::span(reply.datagram).first(reply.bytes))) return false;
  ++ready_;
  return true;
}

bool DatagramReads::may_hello(DatagramSession& session) {
  return within_rate(session.hellos) && within_rate(session.share->hellos);
}

bool DatagramReads::within_rate(DatagramRate& rate) {
  if (rate.take(now_ns_)) return true;
  sessions_.counts.limited.fetch_add(1, std::memory_order_relaxed);
  return false;
}

void DatagramReads::count_drop() {
  sessions_.counts.dropped.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace espalier::offload

// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/offload/datagram_reads.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "catalog/catalog.hpp"
#include "crypto/datagram_tag.hpp"
#include "crypto/hmac.hpp"
#include "engine/audit_log.hpp"
#include "engine/planted_engine_bugs.hpp"
#include "engine/principal_accounts.hpp"
#include "engine/services.hpp"
#include "engine/serving_gate.hpp"
#include "kinds/map/format/shard.hpp"
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

/// A scan of so many items counts as a get more.
constexpr std::uint32_t kItemsOfAGet = 8;

wire::DatagramKind kind_of(const wire::TakenRequest& get) {
  return static_cast<wire::DatagramKind>(get.header.kind);
}

Op op_of(const wire::TakenRequest& get) {
  switch (kind_of(get)) {
    case wire::DatagramKind::floor: return Op::floor;
    case wire::DatagramKind::scan: return Op::scan;
    default: return Op::get;
  }
}

}  // namespace

DatagramReads::DatagramReads(Services& services, DatagramSessions& sessions, std::uint32_t shard)
    : services_(services),
      sessions_(sessions),
      gate_(services.parts.find<ServingGate>()),
      get_offload_(services.offloads[static_cast<std::uint8_t>(wire::OffloadId::get)]),
      floor_offload_(services.offloads[static_cast<std::uint8_t>(wire::OffloadId::floor)]),
      scan_offload_(services.offloads[static_cast<std::uint8_t>(wire::OffloadId::scan)]),
      maps_(services, shard),
      gets_(kGets),
      replies_(2 * kGets) {
  ESPALIER_ASSERT(get_offload_ != nullptr && floor_offload_ != nullptr && scan_offload_ != nullptr);
  ESPALIER_ASSERT(!services.at_device);
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

// Replays by other peers are refused by number or address, before they are charged to the session.
bool DatagramReads::take_checked(const std::shared_ptr<DatagramSession>& session,
                                 const wire::TakenRequest& request, const DatagramSource& from) {
  switch (static_cast<wire::DatagramKind>(request.header.kind)) {
    case wire::DatagramKind::hello: return challenge(*session, request.header, from);
    case wire::DatagramKind::proof: return prove(*session, request, from);
    default: return begin_get(session, request, from);
  }
}

// A hello is accepted once: a replay from another address causes no reply.
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

// A proof is accepted once too, since the session may have another address by then.
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
  const Offload& offload = offload_of(get);
  if (const auto why = session.access.denied(offload, get.key, number, services_.catalog())) {
    refuse_access(session, get, from, *why);
    return nullptr;
  }
  ServedMap* const map = maps_.find(number);
  // Without versions a read may see unreleased state, and rings would delay such an answer.
  if (map == nullptr || !map->keeps_versions()) return nullptr;
  if (map->shard == nullptr) return map;
  const wire::KeyBounds own = map->shard->bounds(map->shard->own);
  const bool scans = kind_of(get) == wire::DatagramKind::scan;
  return (scans ? own.has_range(get.key, get.high) : own.has(get.key)) ? map : nullptr;
}

const Offload& DatagramReads::offload_of(const wire::TakenRequest& get) const {
  switch (kind_of(get)) {
    case wire::DatagramKind::floor: return *floor_offload_;
    case wire::DatagramKind::scan: return *scan_offload_;
    default: return *get_offload_;
  }
}

// As of a request by rings: a client that is refused here need not ask there.
void DatagramReads::refuse_access(const DatagramSession& session, const wire::TakenRequest& get,
                                  const DatagramSource& from, const Error& why) noexcept {
  services_.denied.fetch_add(1, std::memory_order_relaxed);
  services_.audit.refused(session.account->name, [&] {
    AuditRecord record;
    record.act = offload_of(get).name;
    record.name = session.access.who();
    record.role = session.access.role();
    record.address = "datagram " + fabric::roce::to_text(from);
    const auto entry = services_.catalog().find_any(get.header.map);
    record.object = entry != nullptr ? entry->name : "#" + std::to_string(get.header.map);
    record.outcome = why;
    return record;
  });
}

bool DatagramReads::begin_get(const std::shared_ptr<DatagramSession>& session,
                              const wire::TakenRequest& get, const DatagramSource& from) {
  const bool proved = session->has_proved && session->source == from;
  if (!proved && !planted(Bug::datagram_to_unproved)) return false;
  if (free_gets_.empty() || !session->taken.take(get.header.number)) return false;
  if (!within_rate(session->share->gets, 1 + get.header.limit / kItemsOfAGet)) return false;
  ServedMap* const map = map_of(*session, get, from);
  if (map == nullptr) return send_to_rings(*session, get.header.number, from);
  const std::uint32_t place = free_gets_.back();
  free_gets_.pop_back();
  Get& begun = gets_[place];
  begun.session = session;
  begun.asked = get.header;
  begun.from = from;
  begun.map = map;
  const auto end_of_key = std::ranges::copy(get.key, begun.key.begin()).out;
  std::ranges::copy(get.high, end_of_key);
  ++map->users;
  begun.walk.op = op_of(get);
  begun.walk.tag = place;
  begun.walk.key = {begun.key.data(), get.key.size()};
  begun.walk.high = {begun.key.data() + get.key.size(), get.high.size()};
  begun.walk.limit = get.header.limit;
  begun.item_bytes = 0;
  begun.too_long = false;
  try {
    map->submit(begun.walk, *this, wire::Ref{get.header.hint});
    maps_.begin_walks(*map);
  } catch (const std::bad_alloc&) {
    if (begun.session == nullptr) return true;  // it was answered inline
    begun.session = nullptr;
    --map->users;
    free_gets_.push_back(place);
    throw;
  }
  return true;
}

bool DatagramReads::items(std::uint64_t tag, std::span<const Item> items) {
  return std::ranges::all_of(items, [&](const Item& item) { return append(gets_[tag], item); });
}

// Returns false, and the rings are to be asked, where there is no room.
bool DatagramReads::append(Get& to, const Item& item) {
  const auto header = wire::item_header(item.version, item.key.size(), item.value.size());
  const std::size_t bytes = sizeof header + item.key.size() + item.value.size();
  to.too_long = to.too_long || bytes > to.items.size() - to.item_bytes;
  if (to.too_long) return false;
  auto into = to.items.begin() + static_cast<std::ptrdiff_t>(to.item_bytes);
  for (const auto part : {base::bytes_of(header), item.key, item.value}) {
    into = std::ranges::copy(bytes_of(part), into).out;
  }
  to.item_bytes += bytes;
  return true;
}

void DatagramReads::done(const Completion& found) {
  Get& get = gets_[found.tag];
  if (get.walk.op == Op::floor && found.ok && found.found) {
    static_cast<void>(append(get, {found.key, found.value, found.version}));
  }
  const auto session = std::exchange(get.session, nullptr);
  answer(*session, get, found);
  --get.map->users;
  free_gets_.push_back(static_cast<std::uint32_t>(found.tag));
}

// Sends nothing for a session that has ended, or when the node may not answer any more.
void DatagramReads::answer(const DatagramSession& session, const Get& get,
                           const Completion& found) {
  if (session.over.load(std::memory_order_acquire) || (gate_ != nullptr && !gate_->is_open())) {
    return count_drop();
  }
  const bool is_get = get.walk.op == Op::get;
  const bool fits = is_get ? found.value.size() <= wire::kDatagramValueBytesMax : !get.too_long;
  if (!found.ok || !fits) {
    if (!send_to_rings(session, get.asked.number, get.from)) count_drop();
    return;
  }
  const bool any = is_get ? found.found : get.item_bytes != 0;
  auto header = reply_of(session, get.asked.number, wire::DatagramKind::answer,
                         any ? wire::DatagramStatus::found : wire::DatagramStatus::absent);
  header.item_version = is_get && any ? found.version : 0;
  header.read_version = found.read_version;
  std::span<const std::byte> payload = std::span(get.items).first(get.item_bytes);
  if (is_get && any) payload = bytes_of(found.value);
  if (!send(session, get.from, header, payload)) return count_drop();
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

bool DatagramReads::within_rate(DatagramRate& rate, std::uint64_t times) {
  if (rate.take(now_ns_, times)) return true;
  sessions_.counts.limited.fetch_add(1, std::memory_order_relaxed);
  return false;
}

void DatagramReads::count_drop() {
  sessions_.counts.dropped.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace espalier::offload

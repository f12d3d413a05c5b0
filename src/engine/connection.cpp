// SPDX-License-Identifier: Apache-2.0
#include "engine/connection.hpp"

#include <utility>

#include "engine/audit_log.hpp"
#include "engine/endpoint_side.hpp"
#include "engine/waiting_answers.hpp"
#include "rings/ring_link.hpp"

namespace espalier::offload {

Result<std::unique_ptr<Connection>> Connection::create(const wire::ConnectionLayout& layout,
                                                       rings::MessageBudget& budget, Reach reach) {
  if (!layout.valid()) return fail(Code::invalid_argument);
  auto memory = memory::SharedMemory::create("espalier-connection", layout.bytes());
  if (!memory) return std::unexpected(memory.error());
  return std::unique_ptr<Connection>(new Connection(layout, std::move(*memory), budget, reach));
}

Connection::Connection(const wire::ConnectionLayout& layout, memory::SharedMemory memory,
                       rings::MessageBudget& budget, Reach reach)
    : share(budget), stalled(layout.response_rings), layout_(layout), memory_(std::move(memory)) {
  wire::ConnectionPage page{};
  page.magic = wire::kConnectionMagic;
  page.format = wire::kConnectionFormat;
  page.request_slots = layout.request_slots;
  page.response_slots = layout.response_slots;
  page.response_rings = layout.response_rings;
  base::store_plain(memory_.at(0), page);
  if (reach == Reach::mirrored) {
    link_ = std::make_unique<rings::RingLink>(rings::RingLink::Side::node, memory_.at(0), layout);
  }
  std::byte* const credit = memory_.at(offsetof(wire::ConnectionPage, request_credit));
  requests =
      rings::MessageReader(rings::SlotReader(memory_.at(layout.requests()), layout.request_slots,
                                             credit, 0, link_ ? &link_->delivered(0) : nullptr),
                           wire::kRequestHeaderBytes, share);
  rings_.reserve(layout.response_rings);
  for (std::uint32_t i = 0; i < layout.response_rings; ++i) {
    rings_.emplace_back(memory_.at(layout.responses(i)), layout.response_slots,
                        memory_.at(layout.response_side(i)), share);
  }
}

Connection::~Connection() {
  for (rings::ResponseRing& ring : rings_) ring.clear();
}

AuditRecord end_of_session(const Connection& connection) {
  AuditRecord record;
  record.act = "end_session";
  record.name = connection.access.who();
  record.role = connection.access.role();
  record.address = connection.address;
  return record;
}

}  // namespace espalier::offload

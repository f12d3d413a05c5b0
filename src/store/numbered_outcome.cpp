// SPDX-License-Identifier: Apache-2.0
#include "store/numbered_outcome.hpp"

namespace espalier::store {

catalog::ClientRecord NumberedOutcome::record(catalog::ClientFact fact,
                                              std::uint64_t version) const {
  const RequestNumber& asked = turn_->asked();
  catalog::ClientRecord record{};
  record.client = asked.client;
  record.number = asked.number;
  record.acknowledged = asked.acknowledged;
  record.request = asked.request;
  record.version = version;
  record.fact = static_cast<std::uint8_t>(fact);
  return record;
}

Result<std::uint64_t> NumberedOutcome::keep_unwritten(const Unwritten& one) {
  room_ = catalog::kClientBytesMax;
  const bool failed = one.failed_step != nullptr;
  static_cast<void>(take(failed ? std::string() : one.answer));
  const catalog::ClientFact fact = failed ? catalog::ClientFact::condition : this->fact();
  const std::uint64_t version = failed ? *one.failed_step : 0;
  auto room =
      catalog::RedoRoom::reserve(one.object->redo(), catalog::client_record_bytes(answer_.size()));
  if (!room) return std::unexpected(room.error());
  if (*room) {
    std::ranges::fill(room->bytes(), std::byte{0});
    catalog::write_client_record(room->bytes(), record(fact, version), answer_);
  }
  return keep(fact, one.object, version, one.wait_for, [&] { return room->hand_over(); });
}

}  // namespace espalier::store

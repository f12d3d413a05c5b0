// SPDX-License-Identifier: Apache-2.0
// The answers of the host of one_sided_world.hpp to devices, in the format of a node.
#include <cstring>
#include <string>

#include "base/bytes.hpp"
#include "engine/one_sided_fields.hpp"
#include "engine/payload_reader.hpp"
#include "kinds/map/offload/walk_answer.hpp"
#include "tests/support/world_host.hpp"

namespace espalier::test {
namespace {

DeviceAnswer refusal(Code code) {
  DeviceAnswer answer;
  answer.header.code = static_cast<std::uint16_t>(code);
  return answer;
}

// The answer of a walk that ends immediately.
struct WalkedAnswer final : Handler {
  void done(const Completion& completion) override {
    if (!completion.ok) {
      answer = refusal(completion.error.code);
      return;
    }
    answer.header = offload::header_of(completion);
    if (completion.op == Op::floor && completion.found) {
      answer.payload = base::bytes_of(
          wire::item_header(completion.version, completion.key.size(), completion.value.size()));
      answer.payload += completion.key;
    }
    answer.payload += completion.value;
  }
  DeviceAnswer answer;
};

}  // namespace

DeviceAnswer WorldHost::answer_device(std::uint32_t domain, const DeviceQuestion& question) {
  if (question.offload == wire::OffloadId::lease_renew) return renew_lease(question);
  if (question.map != map_->id) return refusal(Code::not_found);
  switch (question.offload) {
    case wire::OffloadId::one_sided_open: return offer_map(domain, question);
    case wire::OffloadId::feed_open: return tell_feed();
    case wire::OffloadId::get:
    case wire::OffloadId::floor: return read_for_device(question);
    default: return refusal(Code::contended);
  }
}

// A session whose leases were ended has its region offered anew, by another key.
DeviceAnswer WorldHost::offer_map(std::uint32_t domain, const DeviceQuestion&) {
  Session& of = session(domain);
  if (!of.region) offer_region(domain);
  const fabric::RemoteRegion region = of.region.remote();
  const auto lease = store_.leases.grant(domain, world_.now_ns());
  if (options_.keeps_leases) of.leases.push_back(lease.id);
  if (!options_.keeps_leases) store_.leases.end(lease.id);
  wire::OfferedRegion offered{};
  offered.base = region.base;
  offered.bytes = region.bytes;
  offered.key = region.key;
  wire::MapPlace place{};
  place.header_offset = map_->header_offset;
  std::memcpy(&place.header, store_.region.at(map_->header_offset), sizeof place.header);
  const wire::LeaseGrant grant{lease.id, lease.epoch, kWorldTerms.renew_every_ns,
                               kWorldTerms.believed_for_ns, kWorldTerms.lost_after_ns};
  DeviceAnswer answer;
  offload::add_field(answer.payload, wire::FieldKind::region, base::bytes_of(offered));
  offload::add_field(answer.payload, wire::FieldKind::map, base::bytes_of(place));
  offload::add_field(answer.payload, wire::FieldKind::lease, base::bytes_of(grant));
  return answer;
}

DeviceAnswer WorldHost::tell_feed() const {
  if (!options_.follows_feed) return refusal(Code::unsupported);
  DeviceAnswer answer;
  offload::add_field(answer.payload, wire::FieldKind::feed, base::bytes_of(feed_));
  return answer;
}

DeviceAnswer WorldHost::renew_lease(const DeviceQuestion& question) {
  const auto renewal = offload::PayloadReader(question.payload).take<wire::LeaseRenewal>();
  const auto epoch = options_.keeps_leases
                         ? store_.leases.renew(renewal.lease, renewal.oldest, world_.now_ns())
                         : Result<std::uint64_t>(store_.epochs.current());
  if (!epoch) return refusal(epoch.error().code);
  DeviceAnswer answer;
  answer.header.version = *epoch;
  return answer;
}

// Not within a write of its own: its one walker is busy then.
DeviceAnswer WorldHost::read_for_device(const DeviceQuestion& question) {
  if (writing_) return refusal(Code::contended);
  Request request;
  request.op = question.offload == wire::OffloadId::get ? Op::get : Op::floor;
  request.key = question.key;
  WalkedAnswer walked;
  writer_->executor.submit(tree::WalkRequest{&request, &walked, nullptr, {}, {}});
  writer_->executor.drain();
  return walked.answer;
}

bool WorldHost::holds_lease(std::uint32_t domain) const {
  for (const auto& lease : store_.leases.holders()) {
    if (lease.owner == domain) return true;
  }
  return false;
}

std::string WorldHost::reclaim() {
  store_.reclaimer.collect(writer_->context.cache);
  if (store_.dropped.due()) store_.dropped.collect();
  if (const std::size_t leases = store_.leases.size(); leases != 0) {
    return std::to_string(leases) + " leases have no end";
  }
  if (store_.reclaimer.waits_for_leases() || store_.reclaimer.bytes_held_by_leases() != 0) {
    return "leases that have ended hold memory back";
  }
  if (const std::uint64_t bytes = store_.reclaimer.waiting(*map_, false).bytes; bytes != 0) {
    return std::to_string(bytes) + " bytes wait, and nothing reads them";
  }
  return {};
}

}  // namespace espalier::test

// SPDX-License-Identifier: Apache-2.0
#include "client/one_sided_caller.hpp"

#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "wire/one_sided.hpp"

namespace espalier::client {
namespace {

constexpr std::uint32_t kSpins = 2000;  // looks in vain before it sleeps
constexpr std::uint64_t kNapNs = 1'000'000;
constexpr int kTries = 2;  // the second with a new session's key and lease

/// What the answer to one_sided_open holds.
struct Opening {
  std::optional<wire::OfferedRegion> region;
  std::optional<wire::MapPlace> map;
  std::optional<wire::LeaseGrant> lease;
};

template <class T>
void take_field(std::optional<T>& to, std::string_view content) {
  if (content.size() < sizeof(T)) return;
  T field;
  std::memcpy(&field, content.data(), sizeof field);
  to = field;
}

// Fields of kinds that are not known are skipped. Errors: corrupt.
Result<Opening> read_fields(std::string_view payload) {
  Opening opening;
  while (!payload.empty()) {
    wire::FieldHeader header;
    if (payload.size() < sizeof header) return fail(Code::corrupt, 1);
    std::memcpy(&header, payload.data(), sizeof header);
    payload.remove_prefix(sizeof header);
    const std::uint64_t padded = (std::uint64_t{header.bytes} + 7) & ~std::uint64_t{7};
    if (padded > payload.size()) return fail(Code::corrupt, 1);
    const std::string_view content = payload.substr(0, header.bytes);
    switch (static_cast<wire::FieldKind>(header.kind)) {
      case wire::FieldKind::region: take_field(opening.region, content); break;
      case wire::FieldKind::map: take_field(opening.map, content); break;
      case wire::FieldKind::lease: take_field(opening.lease, content); break;
      default: break;
    }
    payload.remove_prefix(padded);
  }
  if (!opening.region || !opening.map || !opening.lease) return fail(Code::corrupt, 1);
  return opening;
}

/// Hands on what a reader tells, but for failures that the rings may do better.
class Forward final : public Handler {
 public:
  explicit Forward(Handler& to) : to_(to) {}
  void done(const Completion& completion) override {
    const Code code = completion.error.code;
    const bool lost = code == Code::contended || code == Code::connection_lost;
    failed = !completion.ok && (lost || code == Code::not_found) && completion.items == 0;
    if (!failed) to_.done(completion);
  }
  bool items(std::uint64_t tag, std::span<const Item> items) override {
    return to_.items(tag, items);
  }
  bool failed = false;

 private:
  Handler& to_;
};

}  // namespace

struct OneSidedCaller::OpenedMap {
  OpenedMap(ReadLink& link, const fabric::RemoteRegion& region, const tree::MapView& view_in,
            const wire::LeaseGrant& grant)
      : view(view_in),
        reader(link.endpoint(), link.pair(), link.completions(), region, view,
               {.lanes = 1,
                .terms = {.renew_every_ns = grant.renew_every_ns,
                          .believed_for_ns = grant.believed_for_ns,
                          .lost_after_ns = grant.lost_after_ns},
                .now_ns = base::monotonic_ns}) {
    reader.lease().granted(grant.lease, grant.epoch, base::monotonic_ns());
  }
  tree::MapView view;
  place::OneSidedReader reader;
};

OneSidedCaller::OneSidedCaller() = default;
OneSidedCaller::~OneSidedCaller() = default;

bool OneSidedCaller::serves(Op op) {
  switch (op) {
    case Op::get:
    case Op::floor:
    case Op::scan:
    case Op::scan_reverse:
    case Op::scan_floor: return true;
    default: return false;
  }
}

Result<OneSidedCaller::OpenedMap*> OneSidedCaller::open(RemoteRequests& requests,
                                                        NodeConnection& connection,
                                                        std::uint32_t map) {
  if (link_ && link_->pair().state() == fabric::QueuePair::State::error) close();
  if (const auto known = maps_.find(map); known != maps_.end()) return known->second.get();
  if (!link_) {
    auto link = connection.open_reads();
    if (!link) return std::unexpected(link.error());
    link_ = std::move(*link);
  }
  Outgoing ask;
  ask.offload = wire::OffloadId::one_sided_open;
  ask.map = map;
  const auto reply = requests.call(ask);
  if (!reply) return std::unexpected(reply.error());
  const auto opening = read_fields(reply->payload);
  if (!opening) return std::unexpected(opening.error());
  const fabric::RemoteRegion region{opening->region->base, opening->region->bytes,
                                    opening->region->key, 0};
  const auto view =
      tree::MapView::read(opening->map->header, opening->map->header_offset, region.bytes, nullptr);
  if (!view) return std::unexpected(view.error());
  if (view->id != map || opening->lease->lease == 0) return fail(Code::corrupt, 2);
  auto opened = std::make_unique<OpenedMap>(*link_, region, *view, *opening->lease);
  return maps_.emplace(map, std::move(opened)).first->second.get();
}

void OneSidedCaller::renew(RemoteRequests& requests, place::LeaseGuard& lease) {
  const auto asked = lease.due(base::monotonic_ns());
  if (!asked) return;
  if (asked->id == 0) return lease.end_all();  // another comes with another reader
  const wire::LeaseRenewal renewal{asked->id, asked->oldest};
  Outgoing ask;
  ask.offload = wire::OffloadId::lease_renew;
  ask.payload = base::bytes_of(renewal);
  const auto reply = requests.call(ask);
  if (!reply) return lease.end_all();
  lease.renewed(reply->header.version, base::monotonic_ns());
}

void OneSidedCaller::close() {
  ended_ = traffic();
  maps_.clear();
  link_.reset();
}

tree::WalkTraffic OneSidedCaller::traffic() const {
  tree::WalkTraffic sum = ended_;
  for (const auto& [map, opened] : maps_) {
    sum.round_trips += opened->reader.traffic().round_trips;
    sum.bytes += opened->reader.traffic().bytes;
  }
  return sum;
}

Result<bool> OneSidedCaller::run(RemoteRequests& requests, NodeConnection& connection,
                                 std::uint32_t map, const Request& request, Handler& handler) {
  Forward forward(handler);
  for (int i = 0; i < kTries; ++i) {
    const auto opened = open(requests, connection, map);
    // What is wrong with the connection, the rings will tell.
    if (!opened && opened.error().code == Code::connection_lost) return false;
    if (!opened) return std::unexpected(opened.error());
    place::OneSidedReader& reader = (*opened)->reader;
    reader.submit({&request, 1}, forward);
    std::uint32_t quiet = 0;  // looks since the walk last asked for something
    for (std::uint64_t trips = 0; reader.poll() != 0; ++quiet) {
      if (std::exchange(trips, reader.traffic().round_trips) != reader.traffic().round_trips)
        quiet = 0;
      renew(requests, reader.lease());
      if (reader.lease().ended()) reader.fail();
      if (quiet > kSpins) link_->endpoint().wait(kNapNs);
    }
    if (!forward.failed) return true;
    close();
  }
  ++fallbacks_;
  return false;
}

}  // namespace espalier::client

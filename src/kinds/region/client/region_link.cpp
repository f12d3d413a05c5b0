// SPDX-License-Identifier: Apache-2.0
#include "kinds/region/client/region_link.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "channel/rings/remote_sessions.hpp"
#include "channel/rings/typed_call.hpp"
#include "kinds/region/calls.hpp"

namespace espalier::client {
namespace {

using fabric::Status;
using fabric::WorkRequest;
using region::RegionGrant;

constexpr std::uint64_t kRegionNapNs = 1'000'000;
constexpr std::uint64_t kRegionGiveUpNs = 10'000'000'000;  // without a completion
constexpr int kRegionSpins = 2000;
constexpr int kRegionTriesMax = 3;
constexpr std::uint64_t kRegionPieceBytes = std::uint64_t{1} << 20;

}  // namespace

Result<void> RegionLink::open_link(RemoteSession& session) {
  if (has_none_) return fail(Code::unsupported);
  if (link_ && link_->pair().state() == fabric::QueuePair::State::connected) return {};
  give_up_link();
  auto link = session.rings->connection().open_beside(wire::LinkWay::writes);
  if (!link) {
    has_none_ = link.error().code == Code::unsupported;
    return std::unexpected(link.error());
  }
  link_ = std::move(*link);
  return {};
}

void RegionLink::give_up_link() {
  link_.reset();
  for (auto& [id, known] : known_) known.doubtful = true;
}

Result<RegionGrant> RegionLink::grant_of(RemoteSession& session, std::uint32_t id) {
  Known& known = known_[id];
  if (known.grant.bytes != 0 && !known.doubtful) return known.grant;
  const bool another = known.doubtful;
  const auto granted = ask(session.requests, region_calls::OpenKey{id, another ? 1u : 0u});
  if (!granted) {
    // A number is never given again.
    if (granted.error().code == Code::not_found || !another) known_.erase(id);
    return std::unexpected(granted.error());
  }
  known = {granted->grant, false};
  return known.grant;
}

RegionLink::Ended RegionLink::post(const WorkRequest& request) {
  if (link_->pair().post(request).taken != 1) return {};
  const std::uint64_t since_ns = base::monotonic_ns();
  for (int spins = 0;; ++spins) {
    fabric::Completion completion;
    if (link_->completions().poll({&completion, 1}) != 0 && completion.work_id == posted_) {
      return {completion.status, completion.old_value};
    }
    if (spins < kRegionSpins) continue;
    if (base::monotonic_ns() - since_ns > kRegionGiveUpNs) return {};
    link_->endpoint().wait(kRegionNapNs);
  }
}

// A READ has no effect, and what the peer says that it refused had none, unless it is a WRITE, of
// which the first packets may have been taken.
template <class Make>
Result<std::uint64_t> RegionLink::run(RemoteSession& session, std::uint32_t id,
                                      std::uint64_t offset, const Make& made) {
  for (int tries = 0; tries < kRegionTriesMax; ++tries) {
    if (const auto opened = open_link(session); !opened) return std::unexpected(opened.error());
    const auto grant = grant_of(session, id);
    if (!grant) return std::unexpected(grant.error());
    const WorkRequest request = made(++posted_, grant->key, grant->base + offset);
    const bool atomic = fabric::is_atomic(request.opcode);
    if (!region::is_within(grant->bytes, offset, request.bytes)) return fail(Code::corrupt);
    if (atomic && (grant->flags & region::kGrantsAtomics) == 0) return fail(Code::unsupported);
    const Ended ended = post(request);
    if (ended.status == Status::success) return ended.old_value;
    give_up_link();
    const bool refused = atomic && ended.status == Status::remote_access;
    if (refused || request.opcode == fabric::Opcode::read) continue;
    const auto again = grant_of(session, id);
    if (!again && again.error().code == Code::not_found) return std::unexpected(again.error());
    return fail(Code::connection_lost);
  }
  return fail(Code::connection_lost);
}

Result<void> RegionLink::read(RemoteSession& session, std::uint32_t id, std::uint64_t& offset,
                              std::span<std::byte>& into) {
  while (!into.empty()) {
    const auto piece = into.first(
        std::min<std::uint64_t>(into.size(), kRegionPieceBytes - offset % region::kWordBytes));
    const auto done = run(session, id, offset, [&](std::uint64_t number, auto key, auto at) {
      return WorkRequest::read(number, piece, key, at);
    });
    if (!done) return std::unexpected(done.error());
    into = into.subspan(piece.size());
    offset += piece.size();
  }
  return {};
}

Result<void> RegionLink::write(RemoteSession& session, std::uint32_t id, std::uint64_t& offset,
                               std::span<const std::byte>& from) {
  while (!from.empty()) {
    const auto piece = from.first(
        std::min<std::uint64_t>(from.size(), kRegionPieceBytes - offset % region::kWordBytes));
    const auto done = run(session, id, offset, [&](std::uint64_t number, auto key, auto at) {
      return WorkRequest::write(number, piece, key, at);
    });
    if (!done) return std::unexpected(done.error());
    from = from.subspan(piece.size());
    offset += piece.size();
  }
  return {};
}

Result<std::uint64_t> RegionLink::fetch_add(RemoteSession& session, std::uint32_t id,
                                            std::uint64_t offset, std::uint64_t amount) {
  return run(session, id, offset, [&](std::uint64_t number, auto key, auto at) {
    return WorkRequest::fetch_add(number, key, at, amount);
  });
}

Result<std::uint64_t> RegionLink::compare_swap(RemoteSession& session, std::uint32_t id,
                                               std::uint64_t offset,
                                               const region::RegionSwap& how) {
  return run(session, id, offset, [&](std::uint64_t number, auto key, auto at) {
    return WorkRequest::compare_swap(number, key, at, how.compare, how.swap);
  });
}

}  // namespace espalier::client

// SPDX-License-Identifier: Apache-2.0
#include "kinds/region/client/regions.hpp"

#include <algorithm>
#include <cstring>

#include "base/until_fork.hpp"
#include "channel/objects.hpp"
#include "channel/reached.hpp"
#include "channel/rings/remote_sessions.hpp"
#include "kinds/region/client/region_link.hpp"
#include "kinds/region/execute.hpp"
#include "kinds/region/region_object.hpp"

namespace espalier::client {
namespace {

using region::RegionFault;
using region::RegionObject;

static_assert(Region::kBeyond == static_cast<std::uint32_t>(RegionFault::beyond));
static_assert(Region::kMisaligned == static_cast<std::uint32_t>(RegionFault::misaligned));

/// Of a link that did nothing, or nothing more.
bool node_is_to_be_asked(const Error& error) {
  return error.code == Code::unsupported || error.code == Code::too_many_participants;
}

std::unexpected<Error> fail_at(RegionFault fault) {
  return fail(Code::invalid_argument, static_cast<std::uint32_t>(fault));
}

Result<std::uint64_t> before_in(const Result<region_calls::Word>& reply) {
  if (!reply) return std::unexpected(reply.error());
  return reply->before;
}

/// What one request reads or writes of so many, so that no word is torn.
std::size_t asked_piece(std::uint64_t offset, std::size_t bytes) {
  return std::min<std::size_t>(bytes, region::kRequestBytesMax - offset % region::kWordBytes);
}

template <class Request>
Result<std::shared_ptr<RegionImpl>> reach_region(const std::shared_ptr<channel::Channel>& channel,
                                                 const Request& request) {
  return channel::reach<RegionObject>(
      channel, request, [&](RegionImpl::Object&& object, const region_calls::Opened& opened) {
        return base::make_shared_until_fork<RegionImpl>(channel, std::move(object), opened.bytes);
      });
}

}  // namespace

RegionImpl::RegionImpl(std::shared_ptr<channel::Channel> channel, Object object,
                       std::uint64_t bytes)
    : channel_(std::move(channel)),
      sessions_(std::dynamic_pointer_cast<RemoteSessions>(channel_)),
      object_(std::move(object)),
      bytes_(bytes) {}

template <class Use>
auto RegionImpl::by_link(const Use& use) const {
  using Done = decltype(use(std::declval<RegionLink&>(), std::declval<RemoteSession&>()));
  if (sessions_ == nullptr) return Done(fail(Code::unsupported));
  const auto session = RemoteLease::take_at(*sessions_, object_.node());
  if (!session) return Done(std::unexpected(session.error()));
  return use((*session)->parts.of<RegionLink>(), **session);
}

Result<void> RegionImpl::read(std::uint64_t offset, std::span<std::byte> into) const {
  if (object_.own() != nullptr) return object_.own()->read(offset, into);
  if (const auto fault = region::fault_of_range(bytes_, offset, into.size())) {
    return fail_at(*fault);
  }
  const auto done = by_link([&](RegionLink& link, RemoteSession& session) {
    return link.read(session, object_.number(), offset, into);
  });
  if (done || !node_is_to_be_asked(done.error())) return done;
  return read_by_asking(offset, into);
}

Result<void> RegionImpl::write(std::uint64_t offset, std::span<const std::byte> from) const {
  if (object_.own() != nullptr) return object_.own()->write(offset, from);
  if (const auto fault = region::fault_of_range(bytes_, offset, from.size())) {
    return fail_at(*fault);
  }
  const auto done = by_link([&](RegionLink& link, RemoteSession& session) {
    return link.write(session, object_.number(), offset, from);
  });
  if (done || !node_is_to_be_asked(done.error())) return done;
  return write_by_asking(offset, from);
}

Result<void> RegionImpl::read_by_asking(std::uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const std::size_t piece = asked_piece(offset, into.size());
    const auto reply = object_.ask(
        region_calls::Read{object_.number(), {offset, static_cast<std::uint32_t>(piece), 0}});
    if (!reply) return std::unexpected(reply.error());
    const std::string_view bytes = reply->bytes;
    if (bytes.size() != piece) return fail(Code::corrupt);
    std::memcpy(into.data(), bytes.data(), piece);
    into = into.subspan(piece);
    offset += piece;
  }
  return {};
}

Result<void> RegionImpl::write_by_asking(std::uint64_t offset,
                                         std::span<const std::byte> from) const {
  while (!from.empty()) {
    const std::size_t piece = asked_piece(offset, from.size());
    const std::string_view bytes(reinterpret_cast<const char*>(from.data()), piece);
    const auto done = object_.ask(region_calls::Write{object_.number(), offset, bytes});
    if (!done) return std::unexpected(done.error());
    from = from.subspan(piece);
    offset += piece;
  }
  return {};
}

Result<std::uint64_t> RegionImpl::fetch_add(std::uint64_t offset, std::uint64_t amount) const {
  if (object_.own() != nullptr) return object_.own()->fetch_add(offset, amount);
  if (const auto fault = region::fault_of_word(bytes_, offset)) return fail_at(*fault);
  const auto done = by_link([&](RegionLink& link, RemoteSession& session) {
    return link.fetch_add(session, object_.number(), offset, amount);
  });
  if (done || !node_is_to_be_asked(done.error())) return done;
  return before_in(object_.ask(region_calls::FetchAdd{object_.number(), offset, amount}));
}

Result<std::uint64_t> RegionImpl::compare_swap(std::uint64_t offset, std::uint64_t compare,
                                               std::uint64_t swap) const {
  if (object_.own() != nullptr) return object_.own()->compare_swap(offset, compare, swap);
  if (const auto fault = region::fault_of_word(bytes_, offset)) return fail_at(*fault);
  const region::RegionSwap how{offset, compare, swap};
  const auto done = by_link([&](RegionLink& link, RemoteSession& session) {
    return link.compare_swap(session, object_.number(), offset, how);
  });
  if (done || !node_is_to_be_asked(done.error())) return done;
  return before_in(object_.ask(region_calls::CompareSwap{object_.number(), how}));
}

Result<std::shared_ptr<RegionImpl>> create_region(const std::shared_ptr<channel::Channel>& channel,
                                                  std::string_view name, std::uint64_t bytes) {
  return reach_region(channel, region_calls::Create{name, bytes});
}

Result<std::shared_ptr<RegionImpl>> open_region(const std::shared_ptr<channel::Channel>& channel,
                                                std::string_view name) {
  return reach_region(channel, region_calls::Open{name});
}

Result<std::vector<RegionDescription>> list_regions(channel::Channel& channel) {
  auto listed = channel::list(channel, ObjectKind::region);
  if (!listed) return std::unexpected(listed.error());
  std::vector<RegionDescription> all;
  for (channel::ListedObject& object : *listed) {
    std::uint64_t bytes = 0;
    if (object.description.size() != sizeof bytes) return fail(Code::corrupt);
    std::memcpy(&bytes, object.description.data(), sizeof bytes);
    all.push_back({std::move(object.name), bytes});
  }
  return all;
}

}  // namespace espalier::client

// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/datagram_end.hpp"

#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/ofi/door_patience.hpp"
#include "fabric/ofi/link_table.hpp"
#include "fabric/roce/udp_address.hpp"

namespace espalier::fabric::ofi {
namespace {

using wire::ofi::Introduction;

// So that no tag is that of a completion without one.
constexpr std::uint64_t kFirstTag = 1;

// If it is one of a host.
std::optional<roce::PortAddress> host_address(std::span<const std::byte> bytes) {
  sockaddr_storage storage{};
  std::memcpy(&storage, bytes.data(), std::min(bytes.size(), sizeof storage));
  const bool four = storage.ss_family == AF_INET && bytes.size() == sizeof(sockaddr_in);
  const bool six = storage.ss_family == AF_INET6 && bytes.size() == sizeof(sockaddr_in6);
  if (!four && !six) return {};
  return roce::to_port_address(storage);
}

bool is_host_format(std::uint32_t format) {
  return format == FI_SOCKADDR || format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6;
}

std::span<const std::byte> address_in(const Introduction& introduction) {
  return std::as_bytes(std::span(introduction.address)).first(introduction.address_bytes);
}

}  // namespace

Result<std::unique_ptr<DatagramEnd>> DatagramEnd::open(std::shared_ptr<const Library> library,
                                                       fi_info& info) {
  std::unique_ptr<DatagramEnd> made(new DatagramEnd);
  auto device = Device::open(std::move(library), info);
  if (!device) return std::unexpected(device.error());
  made->device_ = std::move(*device);
  made->receives_max_ = std::min<std::size_t>(info.rx_attr->size, kLinksMax * kReceivesPerLink);
  auto peers = made->device_->make_peers(info, made->links_max());
  if (!peers) return std::unexpected(peers.error());
  made->peers_ = std::move(*peers);
  auto end = made->device_->make_datagram_end(info, *made->peers_.get());
  if (!end) return std::unexpected(end.error());
  made->end_ = std::move(*end);
  if (const auto learnt = made->learn_own_address(info); !learnt) {
    return std::unexpected(learnt.error());
  }
  return made;
}

Result<void> DatagramEnd::learn_own_address(const fi_info& info) {
  own_.magic = wire::ofi::kIntroductionMagic;
  own_.format = wire::ofi::kDatagramFormat;
  own_.address_format = info.addr_format;
  own_.protocol = info.ep_attr->protocol;
  own_.protocol_version = info.ep_attr->protocol_version;
  std::size_t bytes = sizeof own_.address;
  const int answer = fi_getname(end_.base(), own_.address, &bytes);
  if (answer != 0 || bytes == 0 || bytes > sizeof own_.address) {
    return fail(Code::unsupported, static_cast<std::uint32_t>(Lack::features));
  }
  own_.address_bytes = static_cast<std::uint32_t>(bytes);
  // Some say only that it is an address of a host, and of which version it is turns out now.
  const auto at = host_address(address_in(own_));
  if (at) own_.address_format = at->ip.is_v6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
  if (at) shorten_patience(*at);
  return {};
}

std::byte* DatagramEnd::memory_of(std::uint32_t receive) const {
  return chunks_[receive / kReceivesPerLink].memory.get() +
         std::size_t{receive % kReceivesPerLink} * kDatagramBytesMax;
}

Result<void> DatagramEnd::make_room(std::size_t links) {
  while (chunks_.size() < links) {
    if (chunks_.size() == links_max()) {
      return fail(Code::out_of_memory, static_cast<std::uint32_t>(links_max()));
    }
    constexpr std::size_t kBytes = kReceivesPerLink * kDatagramBytesMax;
    Chunk chunk{std::make_unique_for_overwrite<std::byte[]>(kBytes), {}};
    auto told = device_->tell_memory(chunk.memory.get(), kBytes);
    if (!told) return std::unexpected(told.error());
    chunk.told = std::move(*told);
    const auto first = static_cast<std::uint32_t>(chunks_.size()) * kReceivesPerLink;
    chunks_.push_back(std::move(chunk));
    for (std::uint32_t i = 0; i != kReceivesPerLink; ++i) give_back(first + i);
  }
  return {};
}

bool DatagramEnd::post(std::uint32_t receive) {
  if (!end_) return false;
  const Chunk& chunk = chunks_[receive / kReceivesPerLink];
  void* const description = chunk.told ? fi_mr_desc(chunk.told.get()) : nullptr;
  return fi_recv(end_.get(), memory_of(receive), kDatagramBytesMax, description, FI_ADDR_UNSPEC,
                 reinterpret_cast<void*>((kFirstTag + receive) << 8)) == 0;
}

std::optional<std::uint32_t> DatagramEnd::receive_of(std::uint64_t tag) const {
  const std::uint64_t receive = (tag >> 8) - kFirstTag;
  if (receive >= chunks_.size() * kReceivesPerLink) return {};
  return static_cast<std::uint32_t>(receive);
}

void DatagramEnd::give_back(std::uint32_t receive) {
  if (!post(receive)) unposted_.push_back(receive);
}

void DatagramEnd::settle() {
  while (!unposted_.empty() && post(unposted_.back())) unposted_.pop_back();
}

Result<fi_addr_t> DatagramEnd::know(const Introduction& peer, const roce::IpAddress& told_by) {
  const auto refuse = [] { return fail(Code::invalid_argument); };
  if (peer.magic != own_.magic || peer.format != own_.format || peer.reserved != 0 ||
      peer.address_format != own_.address_format || peer.protocol != own_.protocol ||
      peer.protocol_version != own_.protocol_version || peer.address_bytes != own_.address_bytes) {
    return refuse();
  }
  const auto address = address_in(peer);
  const auto behind = std::span(peer.address).subspan(peer.address_bytes);
  if (std::ranges::any_of(behind, [](std::uint8_t byte) { return byte != 0; })) return refuse();
  if (is_host_format(own_.address_format)) {
    // Nobody has this machine talk to another host than his own.
    const auto at = host_address(address);
    if (!at || at->ip != told_by || at->udp_port == 0) return refuse();
  }
  for (Peer& known : known_) {
    if (!std::ranges::equal(known.address, address)) continue;
    ++known.links;
    return known.known_as;
  }
  Peer made{{address.begin(), address.end()}, FI_ADDR_UNSPEC, 1};
  if (fi_av_insert(peers_.get(), made.address.data(), 1, &made.known_as, 0, nullptr) != 1) {
    return refuse();
  }
  known_.push_back(std::move(made));
  return known_.back().known_as;
}

void DatagramEnd::forget(fi_addr_t peer) {
  const auto known = std::find_if(known_.begin(), known_.end(),
                                  [peer](const Peer& each) { return each.known_as == peer; });
  if (known == known_.end() || --known->links != 0) return;
  fi_av_remove(peers_.get(), &known->known_as, 1, 0);
  known_.erase(known);
}

}  // namespace espalier::fabric::ofi

// SPDX-License-Identifier: Apache-2.0
#include "fabric/memif/link.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/bytes.hpp"
#include "base/system_error.hpp"
#include "base/trusted_server.hpp"
#include "base/unix_address.hpp"
#include "memory/seqpacket.hpp"

namespace espalier::fabric::memif {
namespace {

namespace format = wire::memif;
using base::load_le;
using base::store_le;
using format::MessageType;

constexpr std::string_view kName = "espalier";
constexpr std::uint32_t kLog2Slots = 9;
// What the connecting side packs the frames into that it sends.
constexpr std::uint32_t kPackedBytes = 1u << 20;
constexpr std::uint16_t kRegionLast = 3;
// For each of the five messages that a connecting side sends. A flood of them would keep it busy.
constexpr std::uint32_t kAcknowledgesMax = 5;
// More than a packet program needs, and an address in the region has 32 bits.
constexpr std::uint64_t kRegionBytesMax = std::uint64_t{1} << 32;

template <class T>
T new_message(MessageType type) {
  T message{};
  store_le(message.type, static_cast<std::uint16_t>(type));
  return message;
}

template <class T>
T as(const std::array<std::byte, 128>& message) {
  T made;
  std::memcpy(&made, message.data(), sizeof made);
  return made;
}

/// Whether it is an event, and not something else that a write may wait for.
bool is_event(const memory::Descriptor& descriptor) {
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor.number());
  char name[64];
  const ssize_t bytes = ::readlink(path.c_str(), name, sizeof name);
  return bytes > 0 &&
         std::string_view(name, static_cast<std::size_t>(bytes)) == "anon_inode:[eventfd]";
}

}  // namespace

Result<std::unique_ptr<MemifLink>> MemifLink::dial(const std::string& path, std::uint32_t number,
                                                   std::optional<std::uint32_t> server_user) {
  const auto address = base::UnixAddress::file(path);
  if (!address) return std::unexpected(address.error());
  memory::Descriptor made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) return base::refused_by_system();
  made.close_in_children();
  while (::connect(made.number(), address->get(), address->bytes()) != 0) {
    if (errno == EINTR) continue;
    if (errno == ECONNREFUSED || errno == ENOENT) return fail(Code::connection_lost);
    return base::refused_by_system();
  }
  if (const auto good = base::check_server(made.number(), path, server_user); !good) {
    return std::unexpected(good.error());
  }
  std::unique_ptr<MemifLink> link(new MemifLink(std::move(made)));
  link->connects_ = true;
  link->number_ = number;
  return link;
}

std::unique_ptr<MemifLink> MemifLink::accept(memory::Descriptor socket) {
  std::unique_ptr<MemifLink> link(new MemifLink(std::move(socket)));
  auto hello = new_message<format::HelloBytes>(MessageType::hello);
  std::memcpy(hello.name, kName.data(), kName.size());
  store_le(hello.version_min, format::kVersion);
  store_le(hello.version_max, format::kVersion);
  store_le(hello.region_last, kRegionLast);
  hello.log2_slots_max = static_cast<std::uint8_t>(format::kLog2SlotsMax);
  if (!link->say(hello)) link->end();
  return link;
}

void MemifLink::progress(const std::function<bool(std::uint32_t)>& is_free) {
  while (state_ != State::ended) {
    Message message;
    std::array<memory::Descriptor, 1> descriptors;
    const auto bytes = memory::receive_packet(socket_.number(), message, descriptors);
    if (!bytes && bytes.error() == Error{Code::system, 0, EAGAIN}) return;
    if (!bytes || *bytes != message.size() || !take(message, std::move(descriptors[0]), is_free)) {
      // A peer that refuses closes the socket, and its reason may be lost with what it has not
      // read.
      refused_ = connects_ && offered_ && state_ == State::agreeing;
      end();
    }
  }
}

bool MemifLink::take(const Message& message, memory::Descriptor descriptor,
                     const std::function<bool(std::uint32_t)>& is_free) {
  const auto type = static_cast<MessageType>(load_le<std::uint16_t>(message.data()));
  if (type == MessageType::disconnect) return false;
  return connects_ ? take_connecting(message)
                   : take_listening(message, std::move(descriptor), is_free);
}

bool MemifLink::take_connecting(const Message& message) {
  const auto type = static_cast<MessageType>(load_le<std::uint16_t>(message.data()));
  if (type == MessageType::acknowledge) return ++acknowledged_ <= kAcknowledgesMax;
  if (type == MessageType::hello && !offered_) {
    const auto hello = as<format::HelloBytes>(message);
    if (load_le<std::uint16_t>(hello.version_min) > format::kVersion ||
        load_le<std::uint16_t>(hello.version_max) < format::kVersion) {
      return false;
    }
    offered_ = true;
    constexpr std::uint8_t kLog2SlotsMin = 5;
    if (hello.log2_slots_max < kLog2SlotsMin) return false;
    return offer(std::min<std::uint32_t>(hello.log2_slots_max, kLog2Slots));
  }
  if (type != MessageType::connected || !offered_ || state_ != State::agreeing) return false;
  in_.start();
  state_ = State::up;
  return true;
}

/// Makes the memory, says all there is to say of it, and waits for the answer: what a listening end
/// acknowledges on the way changes nothing.
bool MemifLink::offer(std::uint32_t log2_slots) {
  const std::uint64_t ring_bytes = Ring::bytes(log2_slots);
  const std::uint32_t slots = 1u << log2_slots;
  const auto packed_offset = static_cast<std::uint32_t>((2 * ring_bytes + 4095) / 4096 * 4096);
  const std::uint32_t slots_offset = packed_offset + kPackedBytes;
  const std::uint64_t bytes = slots_offset + std::uint64_t{slots} * kSlotBytes;
  auto memory = memory::SharedMemory::create("espalier-memif", bytes);
  in_event_ = memory::Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  out_event_ = memory::Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!memory || !in_event_ || !out_event_) return false;
  regions_.push_back(std::move(*memory));
  const memory::SharedMemory& region = regions_.front();
  Ring out(region.at(0), log2_slots);
  Ring in(region.at(ring_bytes), log2_slots);
  out.begin();
  in.begin();
  out_ = SendingRing(out, &regions_, {region.at(packed_offset), kPackedBytes}, packed_offset);
  in_ = ReceivingRing(in, &regions_, {region.at(slots_offset), std::size_t{slots} * kSlotBytes},
                      slots_offset);

  auto init = new_message<format::InitBytes>(MessageType::init);
  store_le(init.version, format::kVersion);
  store_le(init.link, *number_);
  init.mode = format::kModeEthernet;
  std::memcpy(init.name, kName.data(), kName.size());
  auto add_region = new_message<format::AddRegionBytes>(MessageType::add_region);
  store_le(add_region.bytes, bytes);
  auto add_ring = new_message<format::AddRingBytes>(MessageType::add_ring);
  store_le(add_ring.flags, format::kRingToListener);
  add_ring.log2_slots = static_cast<std::uint8_t>(log2_slots);
  auto add_other = new_message<format::AddRingBytes>(MessageType::add_ring);
  store_le(add_other.offset, static_cast<std::uint32_t>(ring_bytes));
  add_other.log2_slots = add_ring.log2_slots;
  auto connect = new_message<format::ConnectBytes>(MessageType::connect);
  std::memcpy(connect.name, kName.data(), kName.size());
  return say(init) && say(add_region, region.descriptor()) && say(add_ring, out_event_.number()) &&
         say(add_other, in_event_.number()) && say(connect);
}

bool MemifLink::take_listening(const Message& message, memory::Descriptor descriptor,
                               const std::function<bool(std::uint32_t)>& is_free) {
  if (state_ != State::agreeing) return false;
  const auto type = static_cast<MessageType>(load_le<std::uint16_t>(message.data()));
  if (type == MessageType::init && !number_) {
    const auto init = as<format::InitBytes>(message);
    const auto number = load_le<std::uint32_t>(init.link);
    if (load_le<std::uint16_t>(init.version) != format::kVersion ||
        init.mode != format::kModeEthernet) {
      refuse("version 2.0 and Ethernet only");
    } else if (!is_free(number)) {
      refuse("no such link, or already connected");
    } else {
      number_ = number;
      return acknowledge();
    }
    return false;
  }
  if (!number_) return false;
  switch (type) {
    case MessageType::add_region: return add_region(message, std::move(descriptor));
    case MessageType::add_ring: return add_ring(message, std::move(descriptor));
    case MessageType::connect: return start_listening_end();
    default: return false;
  }
}

bool MemifLink::add_region(const Message& message, memory::Descriptor descriptor) {
  const auto said = as<format::AddRegionBytes>(message);
  const auto bytes = load_le<std::uint64_t>(said.bytes);
  if (!descriptor || to_listener_ || from_listener_ || regions_.size() > kRegionLast ||
      load_le<std::uint16_t>(said.index) != regions_.size() || bytes == 0 ||
      bytes > kRegionBytesMax) {
    refuse("no such region");
    return false;
  }
  auto memory = memory::SharedMemory::attach(std::move(descriptor), bytes, memory::Rights::write);
  if (!memory) {
    refuse("memory must be sealed against shrinking, and no huge pages");
    return false;
  }
  memory->close_descriptor();
  regions_.push_back(std::move(*memory));
  return acknowledge();
}

bool MemifLink::add_ring(const Message& message, memory::Descriptor descriptor) {
  const auto said = as<format::AddRingBytes>(message);
  const bool to_listener = (load_le<std::uint16_t>(said.flags) & format::kRingToListener) != 0;
  std::optional<PlacedRing>& place = to_listener ? to_listener_ : from_listener_;
  const auto region = load_le<std::uint16_t>(said.region);
  const auto offset = load_le<std::uint32_t>(said.offset);
  const bool good = !place && descriptor && is_event(descriptor) &&
                    load_le<std::uint16_t>(said.index) == 0 && said.log2_slots >= 1 &&
                    said.log2_slots <= format::kLog2SlotsMax &&
                    load_le<std::uint16_t>(said.private_bytes) == 0 && region < regions_.size() &&
                    offset % 64 == 0 && offset <= regions_[region].bytes() &&
                    Ring::bytes(said.log2_slots) <= regions_[region].bytes() - offset;
  if (!good) {
    refuse("one ring each way, in a region");
    return false;
  }
  // To wake the peer must not block.
  ::fcntl(descriptor.number(), F_SETFL, O_NONBLOCK);
  place = PlacedRing{Ring(regions_[region].at(offset), said.log2_slots), std::move(descriptor)};
  return acknowledge();
}

bool MemifLink::start_listening_end() {
  if (!to_listener_ || !from_listener_ || !to_listener_->ring.is_one() ||
      !from_listener_->ring.is_one()) {
    refuse("no rings");
    return false;
  }
  out_ = SendingRing(from_listener_->ring, &regions_, {}, 0);
  in_ = ReceivingRing(to_listener_->ring, &regions_, {}, 0);
  in_.rise();
  out_event_ = std::move(from_listener_->event);
  in_event_ = std::move(to_listener_->event);
  auto connected = new_message<format::ConnectBytes>(MessageType::connected);
  std::memcpy(connected.name, kName.data(), kName.size());
  state_ = State::up;
  return say(connected);
}

template <class T>
bool MemifLink::say(const T& message, int descriptor) const {
  const std::span descriptors(&descriptor, descriptor < 0 ? 0 : 1);
  return memory::send_packet(socket_.number(), std::as_bytes(std::span(&message, 1)), descriptors)
      .has_value();
}

bool MemifLink::acknowledge() const {
  return say(new_message<format::MessageBytes>(MessageType::acknowledge));
}

void MemifLink::refuse(const char* reason) {
  auto message = new_message<format::DisconnectBytes>(MessageType::disconnect);
  const std::string_view text(reason);
  std::memcpy(message.reason, text.data(), std::min(text.size(), sizeof message.reason - 1));
  static_cast<void>(say(message));
}

void MemifLink::wake_peer() const {
  // The peer has this event too, and could have filled it up so that a write waits.
  pollfd room{out_event_.number(), POLLOUT, 0};
  if (::poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(out_event_.number(), &one, sizeof one);
}

}  // namespace espalier::fabric::memif

// SPDX-License-Identifier: Apache-2.0
// A connecting end of memif that a test plays by hand, message by message and word by word, right
// or wrong.
// Thread: one.
#pragma once

#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "fabric/memif/ring.hpp"
#include "memory/seqpacket.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::memif {

namespace format = wire::memif;

/// What a peer says of itself; a test spoils one thing.
struct RawSayings {
  std::uint16_t version = format::kVersion;
  std::uint32_t link = 1;
  std::uint8_t mode = format::kModeEthernet;
  std::uint16_t region_index = 0;
  std::uint64_t region_bytes = 1 << 20;
  std::uint16_t ring_index = 0;
  std::uint16_t ring_region = 0;
  std::uint32_t ring_offset = 0;
  std::uint8_t log2_slots = 6;
  std::uint16_t private_bytes = 0;
  bool second_ring_goes_the_other_way = true;
  std::uint32_t cookie = format::kRingCookie;
};

class RawPeer {
 public:
  static constexpr std::uint64_t kBytes = 1 << 20;
  static constexpr std::uint32_t kOtherRing = 4096;
  static constexpr std::uint32_t kFrames = 16384;  // where frames may lie

  explicit RawPeer(const std::string& path)
      : socket(*memory::connect_packets(path)),
        memory(*memory::SharedMemory::create("raw-peer", kBytes)),
        event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  template <class T>
  bool say(const T& message, int descriptor = -1) const {
    const std::span descriptors(&descriptor, descriptor < 0 ? 0 : 1);
    return memory::send_packet(socket.number(), std::as_bytes(std::span(&message, 1)), descriptors)
        .has_value();
  }

  void say_init(const RawSayings& sayings) const {
    format::InitBytes init{};
    base::store_le(init.type, std::to_underlying(format::MessageType::init));
    base::store_le(init.version, sayings.version);
    base::store_le(init.link, sayings.link);
    init.mode = sayings.mode;
    say(init);
  }
  void say_region(const RawSayings& sayings, int descriptor) const {
    format::AddRegionBytes region{};
    base::store_le(region.type, std::to_underlying(format::MessageType::add_region));
    base::store_le(region.index, sayings.region_index);
    base::store_le(region.bytes, sayings.region_bytes);
    say(region, descriptor);
  }
  void say_rings(const RawSayings& sayings, int descriptor) const {
    for (const bool second : {false, true}) {
      format::AddRingBytes ring{};
      base::store_le(ring.type, std::to_underlying(format::MessageType::add_ring));
      const bool back = second && sayings.second_ring_goes_the_other_way;
      base::store_le(ring.flags, back ? std::uint16_t{0} : format::kRingToListener);
      base::store_le(ring.index, sayings.ring_index);
      base::store_le(ring.region, sayings.ring_region);
      base::store_le(ring.offset, sayings.ring_offset + (second ? kOtherRing : 0));
      ring.log2_slots = sayings.log2_slots;
      base::store_le(ring.private_bytes, sayings.private_bytes);
      say(ring, descriptor);
    }
  }
  void say_connect() const {
    format::ConnectBytes connect{};
    base::store_le(connect.type, std::to_underlying(format::MessageType::connect));
    say(connect);
  }
  void say_all(const RawSayings& sayings) const {
    for (const std::uint64_t ring : {std::uint64_t{0}, std::uint64_t{kOtherRing}}) {
      std::memcpy(memory.at(ring), &sayings.cookie, sizeof sayings.cookie);
    }
    say_init(sayings);
    say_region(sayings, memory.descriptor());
    say_rings(sayings, event.number());
    say_connect();
  }

  /// The ring that it sends into, and the other.
  [[nodiscard]] Ring out() const { return Ring(memory.at(0), RawSayings{}.log2_slots); }
  [[nodiscard]] Ring in() const { return Ring(memory.at(kOtherRing), RawSayings{}.log2_slots); }
  /// Sends a frame, whatever it holds.
  void send(std::span<const std::byte> frame) {
    std::copy(frame.begin(), frame.end(), memory.at(kFrames));
    send_descriptor({0, 0, static_cast<std::uint32_t>(frame.size()), kFrames, 0});
  }
  void send_descriptor(const format::DescriptorBytes& descriptor) {
    out().store(sent_, descriptor);
    out().set_head(++sent_);
  }

  memory::Descriptor socket;
  memory::SharedMemory memory;
  memory::Descriptor event;

 private:
  std::uint16_t sent_ = 0;
};

}  // namespace espalier::fabric::memif

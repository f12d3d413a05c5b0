// SPDX-License-Identifier: Apache-2.0
// Two ends of the fabric that one thread polls in turn: so the cost of a message is the work at
// both ends, whichever cores the machine has.
//
// A message is one WRITE into the other end's ring, in slots of one size. It ends at the end of its
// slot, with its length and its number last: a WRITE is placed in order, so a reader that sees the
// number has the message. WRITEs that bypass the cache are ordered only as a whole; there length
// and number are a WRITE of their own, and a reader that sees the number has the message on the
// medium. At most half a ring of messages may be in flight.
//
//   | ...           | message, from a multiple of 8 on | bytes (4) | 0 (4) | number (8) |
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/temporary_folder.hpp"
#include "bench/node_transport.hpp"
#include "fabric/endpoint.hpp"
#include "fabric/placement.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::bench {

/// The registration of the far end's ring, and the placement of WRITEs into it.
struct LinkMemory {
  fabric::MemoryKind kind = fabric::MemoryKind::volatile_memory;
  fabric::PlacementPolicy policy = fabric::PlacementPolicy::adaptive;
};

class PolledLink {
 public:
  /// The connecting end, and the listening one.
  enum class End : std::uint8_t { near, far };

  static constexpr std::size_t kSlotBytes = 8192;
  static constexpr std::size_t kMessageBytesMax = kSlotBytes - 16;

  /// Errors: throws std::runtime_error. Requires: has_polled_link(transport).
  PolledLink(NodeTransport transport, const base::TemporaryFolder& folder,
             const LinkMemory& far_ring = {});
  ~PolledLink();
  PolledLink(const PolledLink&) = delete;
  PolledLink& operator=(const PolledLink&) = delete;

  /// Sends a message to the other end. Requires: at most kMessageBytesMax.
  void send(End from, std::span<const std::byte> message);
  /// The next message to this end, once it has arrived. It lies in the ring, aligned to 8, until
  /// half a ring of others has arrived. Errors: throws std::runtime_error, if none arrives for ten
  /// seconds.
  [[nodiscard]] std::span<std::byte> receive(End at);

  /// Lets the near end read memory of the far one.
  [[nodiscard]] fabric::RemoteRegion offer(const memory::SharedMemory& memory);
  /// Reads by the near end. Errors: as receive().
  void read(const fabric::RemoteRegion& region, std::uint64_t offset, std::span<std::byte> into);

  /// Whether a message to the far end is durable when it has arrived.
  [[nodiscard]] bool is_durable() const;
  /// Messages to either end that bypassed a cache or went into persistent memory.
  [[nodiscard]] fabric::PlacedCounts placed() const;
  /// Bytes of messages and READs, without the transport's overhead.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  struct Side;
  [[nodiscard]] Side& side(End end) { return end == End::near ? *near_ : *far_; }
  [[nodiscard]] Side& other(End end) { return end == End::near ? *far_ : *near_; }
  void connect(const std::string& target);
  void turn();
  void post(Side& from, const fabric::WorkRequest& request);
  void write(Side& from, const std::byte* place, std::size_t bytes);

  std::unique_ptr<Side> near_;
  std::unique_ptr<Side> far_;
  std::vector<fabric::Registration> offered_;
  const fabric::Placement far_placement_;
  std::uint64_t reads_ended_ = 0;
  std::uint64_t bytes_ = 0;
};

/// Whether a polled link supports this transport.
[[nodiscard]] bool has_polled_link(NodeTransport transport);

}  // namespace espalier::bench

// SPDX-License-Identifier: Apache-2.0
#include "channel/rings/node_connection.hpp"

namespace espalier::client {

std::optional<std::uint32_t> NodeConnection::take_ring() {
  std::uint32_t ring = rings_taken_.load(std::memory_order_relaxed);
  do {
    if (ring >= layout_.response_rings) return std::nullopt;
  } while (!rings_taken_.compare_exchange_weak(ring, ring + 1, std::memory_order_relaxed));
  return ring;
}

rings::SlotSpace NodeConnection::requests() const {
  return {memory_.at(layout_.requests()), layout_.request_slots,
          memory_.at(offsetof(wire::ConnectionPage, request_credit))};
}

std::optional<std::uint64_t> NodeConnection::reserve(std::uint64_t slots, rings::SlotSpace& space) {
  std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  do {
    // Another thread may have reserved more than there is room for.
    const auto room = static_cast<std::int64_t>(space.room(tail));
    if (room < static_cast<std::int64_t>(slots) &&
        static_cast<std::int64_t>(space.ask_room(tail)) < static_cast<std::int64_t>(slots)) {
      return std::nullopt;
    }
  } while (!tail_.compare_exchange_weak(tail, tail + slots, std::memory_order_relaxed));
  return tail;
}

}  // namespace espalier::client

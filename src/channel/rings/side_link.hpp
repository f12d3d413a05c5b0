// SPDX-License-Identifier: Apache-2.0
// A queue pair by which one thread READs a node's memory, or WRITEs and adds to memory that the
// node offers for that. It is separate from the pair of the rings and has its own endpoint, so a
// refused access breaks nothing else, and no thread waits for a lock.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/clock.hpp"
#include "fabric/address.hpp"
#include "fabric/endpoint.hpp"
#include "wire/ring_link.hpp"

namespace espalier::client {

struct SideLinkTimes {
  std::uint64_t timeout_ns;  ///< for the peer's answer
  std::uint64_t pair_timeout_ns = fabric::QueuePairOptions{}.timeout_ns;
  std::function<std::uint64_t()> now_ns = base::monotonic_ns;
};

class SideLink {
 public:
  /// Connects for the session that the hello names. `hello`: a wire::LinkHello, or a
  /// LinkProvenHello. Requires: its way is reads or writes.
  /// Errors: those of fabric::open_for_connecting; system (ECONNREFUSED, ETIMEDOUT), corrupt (the
  /// peer is not a node), and the node's reason for refusal: unsupported (it does not offer that),
  /// not_found (no such session), too_many_participants.
  static Result<std::unique_ptr<SideLink>> open(const fabric::FabricAddress& address,
                                                std::span<const std::byte> hello,
                                                const SideLinkTimes& times);
  /// The same through an existing endpoint.
  static Result<std::unique_ptr<SideLink>> open(fabric::Connecting way,
                                                std::span<const std::byte> hello,
                                                const SideLinkTimes& times);
  /// Begins to connect through an existing endpoint, and returns without waiting: the pair's state
  /// shows the progress. Does not check the peer's welcome. `pair_timeout_ns`: of the pair. Errors:
  /// those of Endpoint::connect().
  static Result<std::unique_ptr<SideLink>> begin(
      fabric::Connecting way, std::span<const std::byte> hello,
      std::uint64_t pair_timeout_ns = fabric::QueuePairOptions{}.timeout_ns);
  ~SideLink();
  SideLink(const SideLink&) = delete;
  SideLink& operator=(const SideLink&) = delete;

  [[nodiscard]] fabric::Endpoint& endpoint() { return *endpoint_; }
  [[nodiscard]] fabric::QueuePair& pair() { return *pair_; }
  [[nodiscard]] fabric::CompletionQueue& completions() { return completions_; }
  /// Payload bytes of one packet, for transports that send packets.
  [[nodiscard]] std::uint32_t mtu_bytes() const { return mtu_bytes_; }

 private:
  explicit SideLink(std::unique_ptr<fabric::Endpoint> endpoint);
  Result<void> dial(const fabric::Connecting& way, std::span<const std::byte> hello,
                    std::uint64_t pair_timeout_ns);
  Result<void> await(std::span<const std::byte> hello, const SideLinkTimes& times);
  [[nodiscard]] Result<void> check_welcome(const wire::LinkHello& hello) const;

  std::unique_ptr<fabric::Endpoint> endpoint_;
  fabric::CompletionQueue completions_;
  fabric::CompletionQueue receives_;  // nothing is ever received
  std::unique_ptr<fabric::QueuePair> pair_;
  std::uint32_t mtu_bytes_ = 0;
};

}  // namespace espalier::client

// SPDX-License-Identifier: Apache-2.0
// A queue pair by which one thread READs a node's memory, or WRITEs and adds to what the node gave
// it for that: beside that of its rings, at an endpoint of its own, so that what is refused ends
// nothing else and nobody waits for a lock.
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
  /// Connects for the session that the hello names. Requires: its way is reads or writes.
  /// Errors: those of fabric::open_for_connecting; system (ECONNREFUSED, ETIMEDOUT),
  /// corrupt (what answers is no node), and why the node refused: unsupported (it does not offer
  /// that), not_found (no such session), too_many_participants.
  /// `hello`: a wire::LinkHello, or a LinkProvenHello.
  static Result<std::unique_ptr<SideLink>> open(const fabric::FabricAddress& address,
                                                std::span<const std::byte> hello,
                                                const SideLinkTimes& times);
  /// The same through an endpoint that is there.
  static Result<std::unique_ptr<SideLink>> open(fabric::Connecting way,
                                                std::span<const std::byte> hello,
                                                const SideLinkTimes& times);
  /// Begins to connect through an endpoint that is there, and waits for nothing: the pair's state
  /// tells how that goes, and what answers is taken for the node. `pair_timeout_ns`: of the pair.
  /// Errors: those of Endpoint::connect().
  static Result<std::unique_ptr<SideLink>> begin(
      fabric::Connecting way, std::span<const std::byte> hello,
      std::uint64_t pair_timeout_ns = fabric::QueuePairOptions{}.timeout_ns);
  ~SideLink();
  SideLink(const SideLink&) = delete;
  SideLink& operator=(const SideLink&) = delete;

  [[nodiscard]] fabric::Endpoint& endpoint() { return *endpoint_; }
  [[nodiscard]] fabric::QueuePair& pair() { return *pair_; }
  [[nodiscard]] fabric::CompletionQueue& completions() { return completions_; }
  /// What one packet carries, of transports that send packets.
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

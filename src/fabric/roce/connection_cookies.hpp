// SPDX-License-Identifier: Apache-2.0
// Stateless cookies for connection requests, as SYN cookies of TCP: only the machine at a REQ's
// source address can return the cookie that is sent there. So an endpoint with many requests of
// unverified addresses keeps no state of them: it sends the cookie, and forgets the request.
//
// A cookie is a keyed hash of the request and its addresses. The endpoint draws a new key each
// kPeriodNs; the previous one stays valid for as long again.
//
// Thread: one.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <utility>

#include "crypto/sip_hash.hpp"
#include "fabric/roce/connection_message.hpp"
#include "fabric/roce/port.hpp"

namespace espalier::fabric::roce {

class ConnectionCookies {
 public:
  static constexpr std::uint64_t kPeriodNs = 8'000'000'000;

  /// `draw`: unpredictable random numbers.
  explicit ConnectionCookies(std::function<std::uint64_t()> draw) : draw_(std::move(draw)) {}

  /// The cookie of a request that came from `from` to `own`; never 0.
  [[nodiscard]] std::uint64_t make(const PortAddress& from, const PortAddress& own,
                                   const RequestMessage& request, std::uint64_t now_ns);
  /// Whether the request brings one that is not too old.
  [[nodiscard]] bool check(const PortAddress& from, const PortAddress& own,
                           const RequestMessage& request, std::uint64_t now_ns);

 private:
  void rotate(std::uint64_t now_ns);
  [[nodiscard]] crypto::SipKey draw_key() { return {draw_(), draw_()}; }

  std::function<std::uint64_t()> draw_;
  std::array<crypto::SipKey, 2> keys_{};  // the current one, and the one before
  std::uint64_t begun_ns_ = 0;            // when the current one was drawn
  bool drawn_ = false;
};

}  // namespace espalier::fabric::roce

// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/connection_cookies.hpp"

#include <span>
#include <type_traits>

#include "fabric/planted_fabric_bugs.hpp"

namespace espalier::fabric::roce {
namespace {

// All that distinguishes a request from another one, and its source and destination.
struct CookieInput {
  std::array<std::uint8_t, 16> from;
  std::array<std::uint8_t, 16> own;
  std::uint64_t service_id;
  std::uint32_t connection_id;
  std::uint32_t pair;
  std::uint32_t psn;
  std::uint16_t from_port;
  std::uint16_t own_port;
};
static_assert(sizeof(CookieInput) == 56 && std::has_unique_object_representations_v<CookieInput>);

std::uint64_t hash(const crypto::SipKey& key, const CookieInput& input) {
  const std::uint64_t hashed = crypto::sip_hash(key, std::as_bytes(std::span(&input, 1)));
  return hashed != 0 ? hashed : 1;  // 0 says that there is none
}

CookieInput input_of(const PortAddress& from, const PortAddress& own,
                     const RequestMessage& request) {
  return {from.ip.gid(),      own.ip.gid(),         request.service_id, request.ids.local,
          request.local_pair, request.starting_psn, from.udp_port,      own.udp_port};
}

}  // namespace

// Keys are drawn on demand, so an endpoint that is not flooded has none.
void ConnectionCookies::rotate(std::uint64_t now_ns) {
  const std::uint64_t age_ns = now_ns - begun_ns_;
  if (drawn_ && age_ns < kPeriodNs) return;
  const bool recent = drawn_ && age_ns < 2 * kPeriodNs;
  keys_[1] = recent ? keys_[0] : draw_key();
  keys_[0] = draw_key();
  begun_ns_ = recent ? begun_ns_ + kPeriodNs : now_ns;
  drawn_ = true;
}

std::uint64_t ConnectionCookies::make(const PortAddress& from, const PortAddress& own,
                                      const RequestMessage& request, std::uint64_t now_ns) {
  rotate(now_ns);
  return hash(keys_[0], input_of(from, own, request));
}

bool ConnectionCookies::check(const PortAddress& from, const PortAddress& own,
                              const RequestMessage& request, std::uint64_t now_ns) {
  const std::uint64_t cookie = cookie_of(request);
  if (cookie == 0) return false;
  if (planted(Bug::cookie_of_anybody)) return true;
  rotate(now_ns);
  const CookieInput input = input_of(from, own, request);
  return cookie == hash(keys_[0], input) || cookie == hash(keys_[1], input);
}

}  // namespace espalier::fabric::roce

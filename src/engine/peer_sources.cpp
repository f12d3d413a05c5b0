// SPDX-License-Identifier: Apache-2.0
#include "engine/peer_sources.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace espalier::offload {
namespace {

// Strips the port behind the last colon, and brackets, if present.
std::string_view host_of(std::string_view peer) {
  if (peer.starts_with('[')) {
    const std::size_t end = peer.find(']');
    return end == std::string_view::npos ? peer : peer.substr(1, end - 1);
  }
  const std::size_t colon = peer.rfind(':');
  return colon == std::string_view::npos || peer.find(':') != colon ? peer : peer.substr(0, colon);
}

}  // namespace

std::string source_of(std::string_view peer) {
  constexpr std::size_t kNetworkBytes = 8;
  const std::string host(host_of(peer));
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return host;
  in6_addr v6{};
  if (::inet_pton(AF_INET6, host.c_str(), &v6) != 1) return std::string(peer);
  char text[INET6_ADDRSTRLEN] = {};
  if (IN6_IS_ADDR_V4MAPPED(&v6)) {
    std::memcpy(&v4, v6.s6_addr + 12, sizeof v4);
    ::inet_ntop(AF_INET, &v4, text, sizeof text);
    return text;
  }
  std::memset(v6.s6_addr + kNetworkBytes, 0, sizeof v6.s6_addr - kNetworkBytes);
  ::inet_ntop(AF_INET6, &v6, text, sizeof text);
  return std::string(text) + "/64";
}

PeerSources::Source& PeerSources::at(const std::string& source, std::uint64_t now_ns) {
  if (sources_.size() >= kSourcesMax && !sources_.contains(source)) make_room();
  Source& found = sources_[source];
  if (found.wrong == 0) {
    found.counted_ns = now_ns;
  } else if (const std::uint64_t halves = (now_ns - found.counted_ns) / kHalfLifeNs; halves != 0) {
    found.wrong = halves < 32 ? found.wrong >> halves : 0;
    found.counted_ns += halves * kHalfLifeNs;
  }
  return found;
}

// Sources with pending peers are few; of the others, removes the one that was counted longest ago.
void PeerSources::make_room() {
  auto oldest = sources_.end();
  for (auto at = sources_.begin(); at != sources_.end(); ++at) {
    if (at->second.pending != 0) continue;
    if (oldest == sources_.end() || at->second.counted_ns < oldest->second.counted_ns) oldest = at;
  }
  if (oldest != sources_.end()) sources_.erase(oldest);
}

bool PeerSources::enter(const std::string& source, std::uint64_t now_ns) {
  Source& found = at(source, now_ns);
  if (found.pending >= (found.wrong < kSuspect ? kPendingMax : kSuspectPendingMax)) return false;
  ++found.pending;
  return true;
}

void PeerSources::left(const std::string& source) {
  const auto found = sources_.find(source);
  if (found == sources_.end()) return;
  --found->second.pending;
  if (found->second.pending == 0 && found->second.wrong == 0) sources_.erase(found);
}

std::uint64_t PeerSources::wrong(const std::string& source, std::uint64_t now_ns) {
  Source& found = at(source, now_ns);
  constexpr std::uint32_t kWrongMax = 1u << 20;
  found.wrong = std::min(found.wrong + 1, kWrongMax);
  const std::uint32_t doublings = std::min(found.wrong - 1, 31u);
  return std::min(kDelayNs << doublings, kDelayMaxNs);
}

}  // namespace espalier::offload

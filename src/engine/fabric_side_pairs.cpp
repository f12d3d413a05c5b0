// SPDX-License-Identifier: Apache-2.0
// FabricClients of fabric_clients.hpp: a session's further pairs, on which the client READs the
// store, WRITEs its windows, or adds to words of sequencers.
#include <cstring>
#include <span>
#include <utility>

#include "base/places.hpp"
#include "engine/connection.hpp"
#include "engine/fabric_clients.hpp"

namespace espalier::offload {

// A pair beside that of the rings: a refused access ends this pair alone.
Result<std::unique_ptr<fabric::QueuePair>> FabricClients::accept_beside(
    const fabric::ConnectRequest& request, const wire::LinkHello& hello, const Session& session) {
  wire::LinkWelcome welcome{};
  welcome.magic = wire::kLinkMagic;
  welcome.protocol = wire::kLinkProtocol;
  welcome.way = hello.way;
  welcome.node_id = options_.node_id;
  welcome.token = session.token;
  return endpoint_->accept(request, pair_options(session.domain),
                           std::as_bytes(std::span(&welcome, 1)));
}

Result<void> FabricClients::accept_reads(const fabric::ConnectRequest& request,
                                         const wire::LinkHello& hello) {
  if (!options_.one_sided) return fail(Code::unsupported);
  const auto known = sessions_.find(hello.token);
  if (known == sessions_.end()) return fail(Code::not_found);
  Session& session = *known->second;
  auto pair = accept_beside(request, hello, session);
  if (!pair) return std::unexpected(pair.error());
  // Reads of the previous pair are over, and so are its leases: no client renews them.
  if (session.reads) session.reads->close();
  session.connection->parts.fence();
  session.reads = std::move(*pair);
  return {};
}

// Such a pair reaches only what its session may WRITE or add to, which the client requests over its
// rings.
Result<void> FabricClients::accept_writes(const fabric::ConnectRequest& request,
                                          const wire::LinkHello& hello) {
  const auto known = sessions_.find(hello.token);
  if (known == sessions_.end()) return fail(Code::not_found);
  Session& session = *known->second;
  if (!side_.lets_write() && !side_.lets_add()) return fail(Code::unsupported);
  remove_dead_writes(session);
  if (session.writes.size() >= wire::kLinkWritesMax) {
    return base::full(base::Places::landing_windows, wire::kLinkWritesMax);
  }
  auto pair = accept_beside(request, hello, session);
  if (!pair) return std::unexpected(pair.error());
  session.writes.push_back(std::move(*pair));
  ++writes_;
  return {};
}

void FabricClients::remove_dead_writes(Session& session) {
  writes_ -= std::erase_if(session.writes, [](const auto& pair) {
    return pair->state() == fabric::QueuePair::State::error;
  });
}

}  // namespace espalier::offload

// SPDX-License-Identifier: Apache-2.0
#include "client/remote_kept.hpp"

#include <algorithm>
#include <string_view>

namespace espalier::client {
namespace {

void drop(RemoteSession& session, std::span<const std::uint64_t> numbers) {
  constexpr std::size_t kTogether = 256;
  while (!numbers.empty()) {
    const auto some = numbers.first(std::min(kTogether, numbers.size()));
    Outgoing request;
    request.offload = wire::OffloadId::pipeline_drop;
    request.payload = text_of(std::as_bytes(some));
    static_cast<void>(session.requests.call(request));  // a connection that is lost has none
    numbers = numbers.subspan(some.size());
  }
}

}  // namespace

RemoteKept::~RemoteKept() {
  for (const auto& at : at_) {
    if (const auto connection = at.lock()) connection->loaded().forget(this);
  }
}

TableResult<std::uint64_t> RemoteKept::number(RemoteSession& session, std::uint32_t table) {
  const auto& connection = session.rings->shared_connection();
  LoadedNumbers& loaded = connection->loaded();
  if (const auto known = loaded.find(this)) return *known;
  drop(session, loaded.take_dropped());
  Outgoing request;
  request.offload = wire::OffloadId::pipeline_load;
  request.map = table;
  request.payload = text_of(pipeline_);
  const auto reply = session.requests.ask(request);
  if (!reply) return std::unexpected(reply.error());
  const std::lock_guard lock(mutex_);
  std::erase_if(at_, [](const auto& at) { return at.expired(); });
  at_.push_back(connection);
  loaded.keep(this, reply->header.version);
  return *loaded.find(this);
}

}  // namespace espalier::client

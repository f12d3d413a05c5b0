// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/remote_kept.hpp"

#include <algorithm>
#include <string_view>

#include "channel/rings/typed_call.hpp"
#include "kinds/table/calls.hpp"
#include "kinds/table/client/loaded_numbers.hpp"

namespace espalier::client {
namespace {

void drop(RemoteSession& session, std::span<const std::uint64_t> numbers) {
  constexpr std::size_t kTogether = table_calls::kPipelinesMax;
  while (!numbers.empty()) {
    const auto some = numbers.first(std::min(kTogether, numbers.size()));
    // A connection that is lost has none.
    static_cast<void>(
        ask(session.requests, table_calls::DropPipelines{text_of(std::as_bytes(some))}));
    numbers = numbers.subspan(some.size());
  }
}

}  // namespace

RemoteKept::~RemoteKept() {
  for (const auto& at : at_) {
    if (const auto connection = at.lock()) connection->part<LoadedNumbers>().forget(this);
  }
}

TableResult<std::uint64_t> RemoteKept::number(RemoteSession& session, std::uint32_t table) {
  const auto& connection = session.rings->shared_connection();
  auto& loaded = connection->part<LoadedNumbers>();
  if (const auto known = loaded.find(this)) return *known;
  drop(session, loaded.take_dropped());
  Reply answer;
  const auto kept =
      ask_in_words(session.requests, table_calls::LoadPipeline{table, text_of(pipeline_)}, answer);
  if (!kept) return std::unexpected(kept.error());
  const std::lock_guard lock(mutex_);
  std::erase_if(at_, [](const auto& at) { return at.expired(); });
  at_.push_back(connection);
  loaded.keep(this, kept->pipeline);
  return *loaded.find(this);
}

}  // namespace espalier::client

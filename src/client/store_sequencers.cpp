// SPDX-License-Identifier: Apache-2.0
// The sequencers and counters of a store.
#include <utility>

#include "catalog/catalog.hpp"
#include "channel/objects.hpp"
#include "channel/public_call.hpp"
#include "client/store_impl.hpp"
#include "espalier/sequencer.hpp"
#include "kinds/sequencer/client/sequencers.hpp"

namespace espalier {

using client::description_of;

Result<std::uint64_t> Store::sequence(std::string_view name, std::uint32_t count) {
  if (!catalog::Catalog::is_name(name) || count == 0) return fail(Code::invalid_argument);
  return client::call(*impl_, [&] { return client::count(*impl_->channel(), name, count); });
}

Result<Sequencer> Store::create_sequencer(std::string_view name, std::uint64_t first) {
  if (!catalog::Catalog::is_name(name) || first > Sequencer::kEnd) {
    return fail(Code::invalid_argument);
  }
  auto made =
      client::call(*impl_, [&] { return client::create_sequencer(impl_->channel(), name, first); });
  if (!made) return std::unexpected(made.error());
  return client::SequencerImpl::handle(std::move(*made));
}

Result<Sequencer> Store::open_sequencer(std::string_view name) const {
  if (!catalog::Catalog::is_name(name)) return fail(Code::not_found);
  auto opened =
      client::call(*impl_, [&] { return client::open_sequencer(impl_->channel(), name); });
  if (!opened) return std::unexpected(opened.error());
  return client::SequencerImpl::handle(std::move(*opened));
}

Result<void> Store::drop_sequencer(std::string_view name) {
  if (!catalog::Catalog::is_name(name)) return fail(Code::not_found);
  return client::call(
      *impl_, [&] { return channel::drop(*impl_->channel(), name, ObjectKind::sequencer); });
}

Result<std::vector<SequencerDescription>> Store::sequencers() const {
  return client::call(*impl_, [&]() -> Result<std::vector<SequencerDescription>> {
    auto listed = client::list_sequencers(*impl_->channel());
    if (!listed) return std::unexpected(listed.error());
    std::vector<SequencerDescription> all;
    for (client::SequencerInfo& info : *listed) {
      all.push_back(description_of(std::move(info.name), info.facts));
    }
    return all;
  });
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "channel/public_call.hpp"
#include "espalier/hash_map.hpp"
#include "espalier/map.hpp"
#include "kinds/hash/calls.hpp"
#include "kinds/hash/client/hash_maps.hpp"

namespace espalier {

using client::call;

const std::string& HashMap::name() const { return impl_->name(); }

const HashMapOptions& HashMap::options() const { return impl_->options; }

Result<std::optional<Found>> HashMap::get(std::string_view key) const {
  return call(*impl_, [&]() -> Result<std::optional<Found>> {
    Found found;
    const auto version = impl_->get(key, found.value);
    if (!version) return std::unexpected(version.error());
    if (!*version) return std::nullopt;
    found.version = **version;
    return found;
  });
}

Result<bool> HashMap::get(std::string_view key, std::string& value) const {
  return call(*impl_, [&]() -> Result<bool> {
    const auto version = impl_->get(key, value);
    if (!version) return std::unexpected(version.error());
    return version->has_value();
  });
}

Result<Written> HashMap::put(std::string_view key, std::string_view value) {
  return call(*impl_, [&] { return impl_->write<hash_calls::Put>(key, value); });
}

Result<Written> HashMap::insert(std::string_view key, std::string_view value) {
  return call(*impl_, [&] { return impl_->write<hash_calls::Insert>(key, value); });
}

Result<Written> HashMap::update(std::string_view key, std::string_view value) {
  return call(*impl_, [&] { return impl_->write<hash_calls::Update>(key, value); });
}

Result<Written> HashMap::erase(std::string_view key) {
  return call(*impl_, [&] { return impl_->erase(key); });
}

Result<Written> HashMap::modify(
    std::string_view key,
    const std::function<std::optional<std::string>(std::optional<std::string_view>)>& change) {
  return call(*impl_, [&] { return impl_->modify(key, change); });
}

Result<Written> HashMap::compare_and_set(std::string_view key,
                                         std::optional<std::string_view> expected,
                                         std::optional<std::string_view> desired) {
  Condition condition{ConditionKind::absent, 0, {}};
  if (expected) condition = {ConditionKind::value, 0, *expected};
  return call(*impl_, [&] { return impl_->compare_and_set(key, condition, desired); });
}

Result<std::uint64_t> HashMap::add(std::string_view key, std::uint64_t amount) {
  return call(*impl_, [&] { return impl_->add(key, amount); });
}

Result<std::uint64_t> HashMap::walk(const ItemSink& sink) const {
  return call(*impl_, [&] { return impl_->walk(sink); });
}

Result<HashMapStats> HashMap::stats() const {
  return call(*impl_, [&] { return impl_->stats(); });
}

Result<std::vector<std::string>> HashMap::audit() const {
  return call(*impl_, [&] { return impl_->audit(); });
}

Result<Pipeline> Pipeline::open(const HashMap& map, std::uint32_t in_flight) {
  if (in_flight < 1 || in_flight > 256) return fail(Code::invalid_argument, in_flight);
  client::HashMapImpl& behind = client::HashMapImpl::of(map);
  auto impl = call(behind, [&] { return behind.open_pipeline(in_flight); });
  if (!impl) return std::unexpected(impl.error());
  return Pipeline(std::move(*impl));
}

}  // namespace espalier

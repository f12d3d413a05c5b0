// SPDX-License-Identifier: Apache-2.0
#include "espalier/map.hpp"

#include <utility>

#include "channel/public_call.hpp"
#include "kinds/map/client/answer.hpp"

namespace espalier {

using client::call;

Result<std::optional<Found>> Map::get(std::string_view key) const {
  return call(*impl_, [&]() -> Result<std::optional<Found>> {
    std::optional<Found> found(std::in_place);
    const auto there = impl_->get(key, found->value, found->version);
    if (!there) return std::unexpected(there.error());
    if (!*there) found.reset();
    return found;
  });
}

Result<bool> Map::get(std::string_view key, std::string& value) const {
  Version version = 0;
  return call(*impl_, [&] { return impl_->get(key, value, version); });
}

namespace {

Result<Written> write(client::MapImpl& map, Op op, std::string_view key, std::string_view value,
                      const Condition& condition = {}) {
  return call(map, [&] { return map.write_if(op, key, value, condition); });
}

}  // namespace

Result<Written> Map::put(std::string_view key, std::string_view value) {
  return espalier::write(*impl_, Op::put, key, value);
}
Result<Written> Map::insert(std::string_view key, std::string_view value) {
  return espalier::write(*impl_, Op::insert, key, value);
}
Result<Written> Map::update(std::string_view key, std::string_view value) {
  return espalier::write(*impl_, Op::update, key, value);
}
Result<Written> Map::erase(std::string_view key) {
  return espalier::write(*impl_, Op::erase, key, {});
}

Result<Written> Map::modify(
    std::string_view key,
    const std::function<std::optional<std::string>(std::optional<std::string_view>)>& change) {
  for (;;) {
    const auto found = get(key);
    if (!found) return std::unexpected(found.error());
    const auto now = *found ? change((*found)->value) : change(std::nullopt);
    // An erase of a missing key is a write that checks its condition and changes nothing.
    const auto written = espalier::write(*impl_, now ? Op::put : Op::erase, key,
                                         now ? std::string_view(*now) : std::string_view{},
                                         client::unchanged(*found, options().versions));
    if (written || written.error().code != Code::condition_failed) return written;
  }
}

Result<Written> Map::compare_and_set(std::string_view key, std::optional<std::string_view> expected,
                                     std::optional<std::string_view> desired) {
  using Kind = ConditionKind;
  Condition condition;
  condition.kind = expected ? Kind::value : Kind::absent;
  condition.value = expected.value_or(std::string_view{});
  return espalier::write(*impl_, desired ? Op::put : Op::erase, key,
                         desired.value_or(std::string_view{}), condition);
}

Result<std::uint64_t> Map::add(std::string_view key, std::uint64_t amount) {
  return call(*impl_, [&] { return impl_->add(key, amount); });
}

Result<Written> Map::write(const WriteBatch& batch) {
  return call(*impl_, [&] { return impl_->write(batch); });
}

Result<std::uint64_t> Map::scan(std::string_view low, std::string_view high, const ItemSink& sink,
                                ScanOptions options) const {
  return call(*impl_, [&] { return impl_->scan(low, high, sink, options); });
}

Result<std::optional<FoundItem>> Map::floor(std::string_view key) const {
  return call(*impl_, [&] { return client::find_item(*impl_, Op::floor, key); });
}

Result<std::uint64_t> Map::count(std::string_view low, std::string_view high) const {
  return call(*impl_, [&] { return impl_->count(low, high); });
}

Result<std::uint64_t> Map::count_estimate(std::string_view low, std::string_view high) const {
  return call(*impl_, [&] { return impl_->count_estimate(low, high); });
}

Result<Snapshot> Map::snapshot() const {
  auto impl = call(*impl_, [&] { return impl_->snapshot(); });
  if (!impl) return std::unexpected(impl.error());
  return Snapshot(std::move(*impl));
}

const std::string& Map::name() const { return impl_->name(); }
const MapOptions& Map::options() const { return impl_->options(); }
std::uint32_t Map::max_key_bytes() const { return impl_->max_key_bytes(); }

Result<MapStats> Map::stats() const {
  return call(*impl_, [&] { return impl_->stats(); });
}

std::vector<std::string> Map::audit() const {
  auto complaints = call(*impl_, [&] { return impl_->audit(); });
  // A map that could not be checked must not pass for sound.
  if (!complaints) return {"the map could not be checked: " + message(complaints.error())};
  return std::move(*complaints);
}

}  // namespace espalier

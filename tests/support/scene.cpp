// SPDX-License-Identifier: Apache-2.0
#include "tests/support/scene.hpp"

#include <stdexcept>
#include <utility>

#include "kinds/map/host/single_read.hpp"
#include "kinds/map/walk/walk_impl.hpp"
#include "kinds/map/write/change.hpp"
#include "tests/support/store_parts.hpp"

namespace espalier::test {
namespace {

std::unique_ptr<tree::MapCore> make_map(tree::StoreCore& store, std::uint32_t id,
                                        const MapOptions& options) {
  auto map = tree::MapCore::create(store, id, "map" + std::to_string(id), options);
  if (!map) throw std::runtime_error("no map: " + message(map.error()));
  return std::move(*map);
}

std::string item_text(std::string_view key, std::string_view value) {
  return std::string(key) + "=" + std::string(value);
}

}  // namespace

// --- Actor ---------------------------------------------------------------------------------------

Actor::Actor(tree::StoreCore& store, tree::MapCore& map, std::uint32_t index)
    : context(store, join_epochs(store), index),
      map_(map),
      executor_(std::make_unique<tree::HostExecutor<StepAccess>>(
          context, map, 1,
          [this](std::uint32_t, base::ReadyQueue&) { return StepAccess(map_.base, standing_); })) {}

void Actor::begin(Op op, std::string_view key, std::string_view value, const ReadFrom& from) {
  key_ = key;
  value_ = value;
  request_ = {};
  request_.op = op;
  request_.key = key_;
  (op == Op::scan || op == Op::scan_reverse || op == Op::scan_floor ? request_.high
                                                                    : request_.value) = value_;
  submit({&request_, this, from.held, from.hint, {}});
}

void Actor::begin(Op op, std::string_view key, std::string_view value, const Condition& condition) {
  key_ = key;
  value_ = value;
  request_ = {};
  request_.op = op;
  request_.key = key_;
  request_.value = value_;
  submit({&request_, this, nullptr, {}, condition});
}

void Actor::submit(const tree::WalkRequest& walk) {
  if (!standing_.walks.empty()) throw std::logic_error("a request is under way");
  standing_.visited.clear();
  answered_ = false;
  completion_ = {};
  found_key_.clear();
  found_value_.clear();
  found_items_.clear();
  executor_->submit(walk);
  executor_->poll();
}

bool Actor::step() {
  if (!standing_.walks.empty()) {
    const std::coroutine_handle<> walk = standing_.walks.front();
    standing_.walks.pop_front();
    walk.resume();
    executor_->poll();
  }
  return answered_;
}

bool Actor::finish(int steps_max) {
  for (int i = 0; i < steps_max && !answered_; ++i) step();
  return answered_;
}

void Actor::done(const Completion& completion) {
  answered_ = true;
  completion_ = completion;
  found_key_ = completion.key;
  found_value_ = completion.value;
  completion_.key = found_key_;
  completion_.value = found_value_;
}

bool Actor::items(std::uint64_t, std::span<const Item> items) {
  for (const Item& item : items) found_items_.push_back(item_text(item.key, item.value));
  return found_items_.size() < 100'000;  // a broken scan may go round in circles
}

bool Actor::put(std::string_view key, std::string_view value) {
  begin(Op::put, key, value);
  return finish() && completion_.ok;
}

bool Actor::erase(std::string_view key) {
  begin(Op::erase, key);
  return finish() && completion_.ok;
}

std::string Actor::value_found() const {
  if (!answered_) return std::string(kNoAnswer);
  return completion_.found ? found_value_ : std::string(kNothing);
}

std::string Actor::get(std::string_view key, const ReadFrom& from) {
  begin(Op::get, key, {}, from);
  finish();
  return value_found();
}

std::string Actor::floor(std::string_view key, const ReadFrom& from) {
  begin(Op::floor, key, {}, from);
  finish();
  return answered_ && completion_.found ? item_text(found_key_, found_value_) : value_found();
}

std::vector<std::string> Actor::scan(Op op, std::string_view low, std::string_view high,
                                     const ReadFrom& from) {
  begin(op, low, high, from);
  if (!finish()) found_items_.emplace_back(kNoAnswer);
  return found_items_;
}

// --- HeldHere ------------------------------------------------------------------------------------

HeldHere::HeldHere(tree::MapCore& map, tree::ThreadContext& context) : map_(map) {
  context.slot.enter();
  held_ = map.store.reclaimer.hold(map, map.clock.released());
  context.slot.exit();
}

// --- Scene ---------------------------------------------------------------------------------------

Scene::Scene(const MapOptions& options)
    : store(reserve_region(), 16),
      map(make_map(store, 1, options)),
      context(store, join_epochs(store), 0),
      a(store, *map, 1),
      b(store, *map, 2) {}

tree::MapCore& Scene::add_map(const MapOptions& options) {
  const auto id = static_cast<std::uint32_t>(2 + other_maps.size());
  other_maps.push_back(make_map(store, id, options));
  return *other_maps.back();
}

tree::BatchOutcome Scene::write(const std::vector<Put>& puts,
                                std::optional<std::string_view> only_if_absent) {
  std::vector<tree::SearchKey> keys(puts.size());
  std::vector<tree::WriteIntent> intents;
  for (std::size_t i = 0; i < puts.size(); ++i) {
    keys[i].assign(puts[i].key);
    tree::WriteIntent intent;
    intent.op = puts[i].value ? Op::put : Op::erase;
    intent.key = &keys[i];
    if (puts[i].value) intent.value = *puts[i].value;
    intents.push_back(intent);
  }
  tree::SearchKey absent;
  std::vector<tree::KeyCondition> conditions;
  if (only_if_absent) {
    absent.assign(*only_if_absent);
    conditions.push_back({&absent, {ConditionKind::absent, 0, {}}});
  }
  context.slot.enter();
  const tree::BatchOutcome outcome = tree::write_batch(context, *map, intents, conditions);
  context.slot.exit();
  return outcome;
}

std::string Scene::key(int i) {
  const std::string digits = std::to_string(i);
  return "k" + std::string(digits.size() < 3 ? 3 - digits.size() : 0, '0') + digits;
}

std::string Scene::value(int i, std::string_view what) {
  return std::string(what) + std::to_string(i);
}

void Scene::fill(int count, std::string_view what) {
  for (int i = 0; i < count; ++i) {
    if (!a.put(key(i), value(i, what))) throw std::runtime_error("a put was not answered");
  }
}

std::vector<std::string> Scene::filled(int count, std::string_view what) {
  std::vector<std::string> items;
  for (int i = 0; i < count; ++i) items.push_back(item_text(key(i), value(i, what)));
  return items;
}

void Scene::collect() {
  for (int i = 0; i < 4; ++i) store.reclaimer.collect(context.cache);
}

wire::Ref Scene::leaf_of(const tree::MapCore& map, std::string_view key) {
  tree::SearchKey search;
  search.assign(key);
  tree::Path path;
  return map.ref_of(tree::find_leaf(map, search, path));
}

std::vector<std::string> Scene::borders() {
  std::vector<std::string> borders;
  for (std::string key = std::string(1, '\0');;) {
    const tree::NodeView leaf = map->view(leaf_of(key));
    if (!leaf.has_high_fence()) return borders;
    key = leaf.high_fence();
    borders.push_back(key);
  }
}

}  // namespace espalier::test

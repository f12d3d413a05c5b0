// SPDX-License-Identifier: Apache-2.0
#include "tests/support/forged_leaf.hpp"

#include <cstring>

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "tests/support/copy_walker.hpp"

namespace espalier::test {
namespace {

constexpr std::size_t kLargeBytes = 65'536;
constexpr std::uint64_t kBlock = wire::kBlockBytes;

std::string shortened_items(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += item.substr(0, 40) + " ";
  return text;
}

// All that there is in the scene of enter_at_forged_leaves.
struct Expected {
  std::string k;
  std::string large;
};

std::string wrong_read(Scene& scene, wire::Ref hint, const Expected& expected) {
  const ReadFrom from{nullptr, hint};
  if (const std::string got = scene.b.get("k", from); got != expected.k) return "get found " + got;
  if (scene.b.get("none", from) != Actor::kNothing) return "get found what is not there";
  if (const std::string got = scene.b.floor("k", from); got != "k=" + expected.k)
    return "floor found " + got;
  std::vector<std::string> items{"k=" + expected.k, "large=" + expected.large};
  if (const auto got = scene.b.scan(Op::scan, "", "", from); got != items)
    return "scan found " + shortened_items(got);
  std::reverse(items.begin(), items.end());
  if (const auto got = scene.b.scan(Op::scan_reverse, "", "", from); got != items)
    return "reverse scan found " + shortened_items(got);
  return {};
}

std::string wrong_write(Scene& scene, wire::Ref hint, Expected& expected, int number) {
  const auto write = [&](Op op, const std::string& value) {
    scene.b.begin(op, "k", value, ReadFrom{nullptr, hint});
    return scene.b.finish() && scene.b.completion().ok && scene.b.completion().found;
  };
  expected.k = fmt::format("new{:03}", number);
  if (!write(Op::put, expected.k)) return "put did not meet what was there";
  if (const std::string got = scene.a.get("k"); got != expected.k) return "put left " + got;
  expected.k = fmt::format("upd{:03}", number);
  if (!write(Op::update, expected.k)) return "update did not meet what was there";
  if (const std::string got = scene.a.get("k"); got != expected.k) return "update left " + got;
  if (!write(Op::erase, {})) return "erase did not meet what was there";
  if (scene.a.get("k") != Actor::kNothing) return "erase left the item";
  if (!scene.a.put("k", expected.k)) return "put failed";
  if (scene.a.get("large") != expected.large) return "a write changed the value's bytes";
  return {};
}

// Takes all buffers of the extents that there are, so that what comes next lies in others.
std::vector<std::uint64_t> fill_extents(memory::BufferPool& pool, memory::SizeClass cls) {
  std::vector<std::uint64_t> offsets;
  const std::uint64_t taken = pool.stats(cls).taken;
  while (pool.stats(cls).taken == taken) offsets.push_back(*pool.allocate(cls));
  pool.release(offsets.back(), cls);
  offsets.pop_back();
  return offsets;
}

}  // namespace

std::string forged_leaf(const Scene& scene, std::string_view key, std::string_view value,
                        std::string_view forged) {
  const std::byte* leaf = scene.map->at(scene.leaf_of(key).offset());
  std::string image(reinterpret_cast<const char*>(leaf), scene.map->geometry.node_bytes);
  const std::size_t at = image.find(value);
  if (at == std::string::npos || value.size() != forged.size()) return {};
  image.replace(at, forged.size(), forged);
  return image;
}

std::string value_of_leaves(std::string image, std::uint32_t generation, std::size_t bytes) {
  std::memcpy(image.data() + offsetof(wire::NodeHeader, generation), &generation,
              sizeof generation);
  std::string value(kBlock - sizeof(wire::ValueHeader), '.');
  while (value.size() < bytes) value += image;
  value.resize(bytes);
  return value;
}

wire::Ref value_of(const Scene& scene, std::string_view key) {
  tree::SearchKey search;
  search.assign(key);
  const tree::NewestState state =
      tree::newest_state(*scene.map, scene.map->view(scene.leaf_of(key)), search);
  wire::ValueRef value{};
  if (state.out_of_line) std::memcpy(&value, state.value.data(), sizeof value);
  return {value.ref};
}

std::string enter_at_forged_leaves() {
  Scene scene(kLog);
  Expected expected{"honest", {}};
  scene.a.put("k", expected.k);
  const std::string image = forged_leaf(scene, "k", "honest", "forged");
  if (image.empty()) return "no image was made";
  constexpr std::uint32_t kGeneration = 7;
  expected.large = value_of_leaves(image, kGeneration, kLargeBytes);
  scene.a.put("large", expected.large);
  const wire::Ref value = value_of(scene, "large");
  if (!value) return "the value is not out of line";
  int number = 0;
  for (std::uint64_t at = 0; at < kLargeBytes; at += kBlock) {
    const std::uint32_t generation = at == 0 ? value.generation() : kGeneration;
    const wire::Ref hint = wire::Ref::make(value.offset() + at, generation);
    std::string wrong = wrong_read(scene, hint, expected);
    if (wrong.empty()) wrong = wrong_write(scene, hint, expected, ++number);
    if (!wrong.empty()) return fmt::format("entered at byte {} of the value: {}", at, wrong);
  }
  return {};
}

std::string keep_references_to_forged_leaves() {
  constexpr int kItems = 2000;
  constexpr int kValues = 24;
  Scene scene(kLog);
  memory::BufferPool& pool = scene.store.pool;
  const memory::SizeClass node_class = scene.map->node_class;
  scene.a.put(Scene::key(0), "honest");
  const std::string image = forged_leaf(scene, Scene::key(0), "honest", "forged");
  if (image.empty()) return "no image was made";
  // The nodes that are to go lie in an extent of their own.
  const std::vector<std::uint64_t> others = fill_extents(pool, node_class);
  scene.fill(kItems);
  std::vector<wire::Ref> kept;
  for (int i = 0; i < kItems; ++i) {
    const wire::Ref leaf = scene.leaf_of(Scene::key(i));
    if (kept.empty() || kept.back() != leaf) kept.push_back(leaf);
  }
  for (int i = 0; i < kItems; ++i) scene.a.erase(Scene::key(i));
  for (const std::uint64_t offset : others) pool.release(offset, node_class);
  const std::uint64_t taken = pool.stats(node_class).taken;
  // The one leaf that is left moves with each merge of its log, until it lies in the other extent.
  for (int i = 0; i < 1000 && pool.stats(node_class).taken == taken; ++i) {
    scene.a.put(Scene::key(0), "honest");
    scene.collect();
    scene.context.cache.flush();
    scene.a.context.cache.flush();
    pool.trim();
  }
  if (pool.stats(node_class).taken == taken) return "no extent of nodes became empty";
  std::vector<std::uint64_t> values;
  for (int i = 0; i < kValues; ++i) {
    const std::string key = "value" + Scene::key(i);
    const std::uint32_t generation = kept[static_cast<std::size_t>(i)].generation();
    scene.a.put(key, value_of_leaves(image, generation, kLargeBytes));
    values.push_back(value_of(scene, key).offset());
  }
  scene.a.put(Scene::key(0), "honest");
  Clock clock;
  CopyWalker reader(scene.store, *scene.map, 3, clock, 1, 1);
  for (const wire::Ref ref : kept) {
    reader.submit({Op::get, Scene::key(0), {}, {}, 0}, nullptr, ref);
    reader.drain();
    const Operation& got = reader.recorder.log().back();
    if (got.items.size() != 1 || got.items.front().value != "honest")
      return "a reader was answered from what is no node: " + describe(got);
  }
  for (const wire::Ref ref : kept) {
    for (const std::uint64_t value : values) {
      if (ref.offset() >= value && ref.offset() < value + kLargeBytes)
        return "a node's buffer became the inside of a value";
    }
  }
  return {};
}

}  // namespace espalier::test

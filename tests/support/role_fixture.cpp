// SPDX-License-Identifier: Apache-2.0
#include "tests/support/role_fixture.hpp"

#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <tuple>
#include <vector>

#include "channel/objects.hpp"
#include "client/store_impl.hpp"
#include "espalier/embedding_table.hpp"
#include "espalier/hash_map.hpp"
#include "espalier/ranking_model.hpp"
#include "espalier/region.hpp"
#include "espalier/sequencer.hpp"
#include "espalier/table.hpp"
#include "kinds/embedding/testing/ranking_files.hpp"

namespace espalier::test {

RoleFixture::RoleFixture() {
  for (const auto& [name, text] : lines_) write(name, text);
}

void RoleFixture::write(const std::string& name, const std::string& text) const {
  std::ofstream(path(name)) << text;
  ASSERT_EQ(::chmod(path(name).c_str(), 0600), 0);
}

std::string RoleFixture::all_lines() const {
  std::string all;
  for (const auto& [name, text] : lines_) all += text;
  return all;
}

void RoleFixture::make(const std::string& prefix) {
  Store store = admin();
  ASSERT_TRUE(store.create_map(prefix + "m")->put("k", "v"));
  ASSERT_TRUE(store.create_sequencer(prefix + "s", 100));
  ASSERT_TRUE(store.create_hash_map(prefix + "h")->put("k", "v"));
  ASSERT_TRUE(store.create_region(prefix + "r", 64));
  auto rows = store.create_embedding_table(prefix + "e", {.dimension = 8});
  ASSERT_TRUE(rows && rows->append(std::vector<float>(8)));
  embedding::RankingParts model;
  model.tables = {prefix + "e", prefix + "e"};
  base::Random random(1);
  model.draw(random);
  ASSERT_TRUE(store.create_ranking_model(prefix + "g", model.file()));
  ASSERT_TRUE(store.create_table(prefix + "t", *Schema::parse("id i64 not null")));
}

void RoleFixture::restore(const std::string& prefix) {
  Store store = admin();
  static_cast<void>(store.drop_map(prefix + "made"));
  static_cast<void>(store.drop_sequencer(prefix + "made_s"));
  static_cast<void>(store.drop_table(prefix + "made_t"));
  static_cast<void>(store.drop_hash_map(prefix + "made_h"));
  static_cast<void>(store.drop_region(prefix + "made_r"));
  static_cast<void>(store.drop_embedding_table(prefix + "made_e"));
  static_cast<void>(store.open_map(prefix + "m")->erase("i"));
  static_cast<void>(store.open_map(prefix + "m")->put("k", "v"));
  static_cast<void>(store.open_hash_map(prefix + "h")->put("k", "v"));
  static_cast<void>(store.open_embedding_table(prefix + "e")->replace(0, std::vector<float>(8)));
}

roles::Objects RoleFixture::objects(const std::string& prefix) const {
  roles::Objects found{prefix, {}};
  const Store store = admin();
  for (const auto& [on, kind, name] : {std::tuple{roles::On::map, ObjectKind::map, "m"},
                                       std::tuple{roles::On::table, ObjectKind::table, "t"},
                                       std::tuple{roles::On::sequencer, ObjectKind::sequencer, "s"},
                                       std::tuple{roles::On::hash, ObjectKind::hash, "h"},
                                       std::tuple{roles::On::region, ObjectKind::region, "r"},
                                       std::tuple{roles::On::embedding, ObjectKind::embedding, "e"},
                                       std::tuple{roles::On::model, ObjectKind::model, "g"}}) {
    const auto all = channel::list(*client::StoreImpl::of(store).channel(), kind);
    for (const channel::ListedObject& object : all.value()) {
      if (object.name == prefix + name) found.numbers[on] = object.id;
    }
  }
  return found;
}

std::string RoleFixture::state(const std::string& but) const {
  std::ostringstream text;
  Store store = admin();
  const auto all = channel::list(*client::StoreImpl::of(store).channel());
  for (const channel::ListedObject& object : all.value()) {
    if (object.name.starts_with(but)) continue;
    text << static_cast<int>(object.kind) << ' ' << object.name << ' ' << object.numbers.entries
         << '\n';
    if (object.kind == ObjectKind::embedding) {
      const std::uint32_t first[] = {0};
      const auto rows = store.open_embedding_table(object.name);
      const auto sum = rows->reduce(Reduction::sum, {first, first});
      text << (sum ? sum->front() : -1) << '\n';
    }
    if (object.kind != ObjectKind::map) continue;
    const auto scanned = store.open_map(object.name)->scan("", "", [&](auto items) {
      for (const Item& item : items) text << item.key << '=' << item.value << '\n';
      return true;
    });
    text << scanned.value() << '\n';
  }
  const auto sequencers = store.sequencers();
  for (const SequencerDescription& each : sequencers.value()) {
    if (each.name.starts_with(but)) continue;
    text << each.name << ' ' << each.epoch << ' ' << each.sealed << ' ' << each.next << '\n';
  }
  const auto hash_maps = store.hash_maps();
  for (const HashMapDescription& each : hash_maps.value()) {
    if (each.name.starts_with(but)) continue;
    const auto map = store.open_hash_map(each.name);
    for (const char* const key : {"i", "k", "n"}) {
      const auto found = map->get(key);
      text << key << '=' << (*found ? (*found)->value : "none") << '\n';
    }
  }
  const auto regions = store.regions();
  for (const RegionDescription& each : regions.value()) {
    if (each.name.starts_with(but)) continue;
    std::vector<std::byte> bytes(each.bytes);
    const auto read = store.open_region(each.name)->read(0, bytes);
    text << read.has_value();
    for (const std::byte byte : bytes) text << ' ' << static_cast<int>(byte);
    text << '\n';
  }
  return text.str();
}

std::string RoleFixture::names() const {
  std::string text;
  const auto all = channel::list(*client::StoreImpl::of(admin()).channel());
  for (const channel::ListedObject& object : all.value()) text += object.name + "\n";
  return text;
}

void RoleFixture::expect_all_as_written(const std::string& address, std::string_view by) {
  for (const auto& [name, client] : clients_) {
    for (const std::string prefix : {"", kPrefix}) {
      SCOPED_TRACE(name + " at " + address + " asks for '" + prefix + "*'");
      restore(prefix);
      const roles::Objects asked = objects(prefix);
      const std::string before = state();
      const std::string of_others = state(kPrefix);
      const std::string names_before = names();
      expect_as_written(roles::ask_all(address, secret(name), asked), client, asked, by);
      // What was refused was not done.
      if (client.role == roles::Right::read) {
        EXPECT_EQ(state(), before);
      }
      if (client.role != roles::Right::admin) {
        EXPECT_EQ(names(), names_before);
      }
      if (!client.prefix.empty()) {
        EXPECT_EQ(state(kPrefix), of_others);
      }
    }
  }
  // Without a secret there is no session.
  const auto came = roles::ask_all(address, {}, objects(""));
  ASSERT_EQ(came.size(), 1u);
  EXPECT_EQ(came[0], (Error{Code::not_permitted, 0, 4}));
}

}  // namespace espalier::test

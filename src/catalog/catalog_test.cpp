// SPDX-License-Identifier: Apache-2.0
#include "catalog/catalog.hpp"

#include <gtest/gtest.h>

#include <set>

#include "catalog/testing/some_objects.hpp"

namespace espalier::catalog {
namespace {

Error error_of(Code code, ObjectKind kind = ObjectKind::any) {
  return {code, 0, static_cast<std::uint32_t>(kind)};
}

TEST(Catalog, FindsEachKindByNameAndById) {
  SomeCatalog some;
  const auto map = some.create<SomeMap>("one").value();
  const auto table = some.create<SomeTable>("two").value();
  const auto later = some.create<SomeLater>("three").value();
  const Catalog& catalog = some.catalog;
  EXPECT_EQ(map->name, "one");
  EXPECT_EQ(catalog.open<SomeMap>("one"), map);
  EXPECT_EQ(catalog.open<SomeTable>("two"), table);
  EXPECT_EQ(catalog.open<SomeLater>("three"), later);
  EXPECT_EQ(catalog.find<SomeMap>(map->id), map);
  EXPECT_EQ(catalog.find<SomeTable>(table->id), table);
  EXPECT_EQ(catalog.find<SomeLater>(later->id), later);
  EXPECT_EQ(catalog.find<SomeMap>(0), nullptr);
  EXPECT_EQ(catalog.find<SomeMap>(later->id + 1), nullptr);
  EXPECT_EQ(catalog.open<SomeMap>("four").error(), error_of(Code::not_found));
  EXPECT_EQ(catalog.open<SomeMap>("").error(), error_of(Code::not_found));
}

TEST(Catalog, IdsAndNamesAreOfOneSpace) {
  SomeCatalog some;
  const auto map = some.create<SomeMap>("m").value();
  const auto table = some.create<SomeTable>("t").value();
  EXPECT_NE(map->id, table->id);
  EXPECT_EQ(some.catalog.find<SomeTable>(map->id), nullptr);
  EXPECT_EQ(some.catalog.find<SomeMap>(table->id), nullptr);
  EXPECT_EQ(some.create<SomeTable>("m").error(), error_of(Code::already_exists, ObjectKind::map));
  EXPECT_EQ(some.create<SomeMap>("t").error(), error_of(Code::already_exists, ObjectKind::table));
  EXPECT_EQ(some.create<SomeMap>("m").error(), error_of(Code::already_exists, ObjectKind::map));
  EXPECT_EQ(some.catalog.open<SomeMap>("t").error(), error_of(Code::wrong_kind, ObjectKind::table));
  EXPECT_EQ(some.catalog.open<SomeTable>("m").error(), error_of(Code::wrong_kind, ObjectKind::map));
  EXPECT_EQ(some.living, 2) << "what is refused is not made";
}

TEST(Catalog, DropsTheKindThatIsNamedOnly) {
  SomeCatalog some;
  auto map = some.create<SomeMap>("m").value();
  const auto table = some.create<SomeTable>("t").value();
  EXPECT_EQ(some.catalog.drop<SomeTable>("m").error(), error_of(Code::wrong_kind, ObjectKind::map));
  EXPECT_EQ(some.catalog.drop("t", ObjectKind::map).error(),
            error_of(Code::wrong_kind, ObjectKind::table));
  EXPECT_EQ(some.catalog.drop("x").error(), error_of(Code::not_found));
  const std::uint32_t id = some.catalog.find_any("t")->id;
  EXPECT_EQ(some.catalog.drop("t", ObjectKind::any, id + 1).error(), error_of(Code::not_found));
  EXPECT_EQ(map->times_dropped, 0);
  EXPECT_EQ(some.catalog.drop<SomeMap>("m"), map);
  EXPECT_EQ(map->times_dropped, 1);
  const auto dropped = some.catalog.drop("t");
  ASSERT_TRUE(dropped);
  EXPECT_EQ((*dropped)->object, table);
  EXPECT_EQ((*dropped)->kind, ObjectKind::table);
  EXPECT_EQ(table->times_dropped, 1);
  EXPECT_TRUE(some.catalog.list().empty());
  EXPECT_EQ(some.catalog.find<SomeMap>(map->id), nullptr);
  EXPECT_EQ(some.living, 2) << "who holds it keeps it";
  map = nullptr;
  EXPECT_EQ(some.living, 1);
}

TEST(Catalog, ListsKindsByAscendingNames) {
  SomeCatalog some;
  const auto b = some.create<SomeMap>("b").value();
  const auto c = some.create<SomeTable>("c").value();
  const auto a = some.create<SomeTable>("a").value();
  EXPECT_EQ(some.catalog.names(), (ObjectNames{"a", "b", "c"}));
  EXPECT_EQ(some.catalog.names(ObjectKind::table), (ObjectNames{"a", "c"}));
  EXPECT_EQ(some.catalog.names(ObjectKind::map), (ObjectNames{"b"}));
  EXPECT_EQ(some.catalog.names(static_cast<ObjectKind>(7)), ObjectNames{});
  const auto all = some.catalog.list();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1]->object, b);
  EXPECT_EQ(all[1]->id, b->id);
  EXPECT_EQ(all[1]->kind, ObjectKind::map);
  EXPECT_EQ(all[0]->object->numbers().entries, a->id);
  EXPECT_EQ(all[0]->object->description(), "made of nothing");
}

TEST(Catalog, ANameIsUsedAgainByAnyKindAndAnIdNever) {
  SomeCatalog some;
  std::set<std::uint32_t> ids;
  for (int round = 0; round < 10; ++round) {
    const auto map = some.create<SomeMap>("name").value();
    EXPECT_TRUE(ids.insert(map->id).second);
    ASSERT_TRUE(some.catalog.drop("name"));
    const auto table = some.create<SomeTable>("name").value();
    EXPECT_TRUE(ids.insert(table->id).second);
    EXPECT_EQ(some.catalog.find<SomeMap>(map->id), nullptr);
    ASSERT_TRUE(some.catalog.drop<SomeTable>("name"));
  }
  EXPECT_EQ(some.living, 0);
}

TEST(Catalog, NamesHaveOneTo255BytesOfAnyKind) {
  SomeCatalog some;
  EXPECT_EQ(some.create<SomeMap>("").error(), error_of(Code::invalid_argument));
  EXPECT_EQ(some.create<SomeMap>(std::string(256, 'n')).error(), error_of(Code::invalid_argument));
  const std::string longest(255, 'n');
  const std::string odd("\0\xFF\n", 3);
  EXPECT_TRUE(some.create<SomeMap>(longest));
  EXPECT_TRUE(some.create<SomeTable>(odd));
  EXPECT_TRUE(some.catalog.open<SomeMap>(longest));
  EXPECT_EQ((*some.catalog.open<SomeTable>(odd))->name, odd);
}

TEST(Catalog, WhatCannotBeMadeLeavesNothingBehind) {
  SomeCatalog some;
  const auto refuse = [](std::uint32_t, std::string) -> Result<std::shared_ptr<SomeMap>> {
    return fail(Code::out_of_memory, 7);
  };
  EXPECT_EQ(some.catalog.create<SomeMap>("m", refuse).error(), (Error{Code::out_of_memory, 0, 7}));
  EXPECT_TRUE(some.catalog.list().empty());
  EXPECT_TRUE(some.create<SomeTable>("m"));
}

}  // namespace
}  // namespace espalier::catalog

// SPDX-License-Identifier: Apache-2.0
// Renames: what look-ups find, what is recorded, and how such records are applied again, from the
// beginning or after a copy.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.hpp"
#include "catalog/apply_record.hpp"
#include "catalog/object_redo.hpp"
#include "catalog/testing/recording_sink.hpp"
#include "catalog/testing/some_objects.hpp"

namespace espalier::catalog {
namespace {

constexpr auto kAny = ObjectKind::any;

struct CatalogRename : ::testing::Test, SomeCatalog {
  CatalogRename() { catalog.record_to(&sink); }
  /// "a=1 b=2", of ids.
  [[nodiscard]] static std::string names_of(const Catalog& catalog) {
    std::string text;
    for (const EntryPointer& entry : catalog.list()) {
      text += entry->name + "=" + std::to_string(entry->id) + " ";
      EXPECT_EQ(catalog.find_any(entry->id), entry) << "name and id lead to one entry";
    }
    return text;
  }
  [[nodiscard]] std::string names() const { return names_of(catalog); }
  [[nodiscard]] std::string last() const { return std::string(sink.records().back()); }
  [[nodiscard]] Error error_of(std::string_view name, std::string_view to, Displaced displaced) {
    const auto done = catalog.rename(name, to, kAny, displaced);
    return done ? Error{} : done.error();
  }

  RecordingSink sink;
};

TEST_F(CatalogRename, AFreeNameIsTaken) {
  const auto made = *create<SomeMap>("a");
  ASSERT_TRUE(catalog.rename("a", "b", ObjectKind::map, Displaced::refused));
  EXPECT_EQ(names(), "b=1 ");
  EXPECT_EQ(*catalog.open<SomeMap>("b"), made);
  EXPECT_EQ(made->renamed, "b");
  EXPECT_EQ(made->rename, 1u);
  EXPECT_EQ(catalog.renames(), 1u);
  EXPECT_EQ(*read_renamed(last()), (RenamedObject{ObjectKind::map, 1, 1, 0, "b", ""}));
  EXPECT_EQ(catalog.recorded(), sink.handed_over());
  EXPECT_EQ(catalog.find_any("b")->created, sink.handed_over()) << "who opens it waits for that";
  ASSERT_TRUE(catalog.rename("b", "a", kAny, Displaced::dropped));
  EXPECT_EQ(names(), "a=1 ");
}

TEST_F(CatalogRename, NamesAreExchanged) {
  const auto old = *create<SomeMap>("a");
  const auto young = *create<SomeMap>("b");
  EXPECT_EQ(*catalog.rename("b", "a", kAny, Displaced::exchanged), nullptr);
  EXPECT_EQ(names(), "a=2 b=1 ");
  EXPECT_EQ(old->renamed, "b");
  EXPECT_EQ(young->renamed, "a");
  EXPECT_EQ(*read_renamed(last()), (RenamedObject{ObjectKind::map, 2, 1, 1, "a", "b"}));
  EXPECT_EQ(catalog.find_any("b")->created, sink.handed_over());
  ASSERT_TRUE(catalog.drop("b"));
  EXPECT_EQ(names(), "a=2 ");
}

TEST_F(CatalogRename, WhatHadTheNameIsDropped) {
  ASSERT_TRUE(create<SomeMap>("a"));
  ASSERT_TRUE(create<SomeMap>("b"));
  {
    const auto dropped = catalog.rename("b", "a", kAny, Displaced::dropped);
    ASSERT_TRUE(dropped);
    EXPECT_EQ((*dropped)->id, 1u);
  }
  EXPECT_EQ(names(), "a=2 ");
  EXPECT_EQ(living, 1);
  EXPECT_EQ(*read_renamed(last()), (RenamedObject{ObjectKind::map, 2, 1, 1, "a", ""}));
}

TEST_F(CatalogRename, WhatIsRefusedChangesNothing) {
  ASSERT_TRUE(create<SomeMap>("a"));
  ASSERT_TRUE(create<SomeMap>("b"));
  ASSERT_TRUE(create<SomeTable>("t"));
  using enum Displaced;
  const auto is = [](Code code, std::uint32_t detail = 0) { return Error{code, 0, detail}; };
  EXPECT_EQ(error_of("a", "b", refused), is(Code::already_exists, 1));
  EXPECT_EQ(error_of("a", "t", refused), is(Code::already_exists, 2));
  EXPECT_EQ(error_of("a", "t", exchanged), is(Code::wrong_kind, 2));
  EXPECT_EQ(error_of("a", "t", dropped), is(Code::wrong_kind, 2));
  EXPECT_EQ(error_of("a", "c", exchanged), is(Code::not_found, 1));
  EXPECT_EQ(error_of("c", "a", exchanged), is(Code::not_found));
  EXPECT_EQ(error_of("a", "a", exchanged), is(Code::invalid_argument));
  EXPECT_EQ(error_of("a", "", dropped), is(Code::invalid_argument));
  EXPECT_EQ(error_of("a", std::string(256, 'x'), refused), is(Code::invalid_argument));
  EXPECT_EQ(error_of("t", "u", refused), is(Code::unsupported, 2)) << "its kind keeps its names";
  EXPECT_EQ(catalog.rename("a", "c", ObjectKind::table, refused).error(), is(Code::wrong_kind, 1));
  EXPECT_EQ(sink.rooms(), 0u);
  sink.refuse(true);
  EXPECT_EQ(error_of("a", "c", refused).code, Code::busy);
  EXPECT_EQ(names(), "a=1 b=2 t=3 ");
  EXPECT_EQ(catalog.renames(), 0u);
  EXPECT_EQ(sink.count(), 3u);
}

TEST_F(CatalogRename, GoldenBytes) {
  ASSERT_TRUE(create<SomeMap>("a"));
  ASSERT_TRUE(create<SomeMap>("bc"));
  ASSERT_TRUE(catalog.rename("bc", "a", kAny, Displaced::exchanged));
  EXPECT_EQ(hex_of(last()),
            "2300000000000000 0200000001050000 0100000001000000 0100020000000000 616263");
}

RedoFault fault_with(std::string record, std::size_t at, std::uint8_t byte) {
  record[at] = static_cast<char>(byte);
  const auto read = read_renamed(record);
  return read ? RedoFault::invalid : static_cast<RedoFault>(read.error().detail);
}

TEST_F(CatalogRename, ARecordSaysWhatIsWrong) {
  ASSERT_TRUE(create<SomeMap>("a"));
  ASSERT_TRUE(create<SomeMap>("bc"));
  ASSERT_TRUE(catalog.rename("bc", "a", kAny, Displaced::exchanged));
  const std::string good = last();
  EXPECT_EQ(fault_with(good, 0, 0x23), RedoFault::invalid);
  EXPECT_EQ(fault_with(good, 13, 2), RedoFault::type);
  EXPECT_EQ(fault_with(good, 28, 1), RedoFault::reserved);
  EXPECT_EQ(fault_with(good, 16, 0), RedoFault::count);
  EXPECT_EQ(fault_with(good, 20, 2), RedoFault::object) << "it had the name itself";
  EXPECT_EQ(fault_with(good, 8, 0), RedoFault::object) << "of none it says a number alone";
  EXPECT_EQ(fault_with(good, 24, 0), RedoFault::name);
  EXPECT_EQ(fault_with(good, 20, 0), RedoFault::name) << "of no other one a name";
  EXPECT_EQ(fault_with(good, 24, 2), RedoFault::bytes);
  EXPECT_EQ(fault_with(good, 25, 1), RedoFault::name) << "a name of 257 bytes";
  EXPECT_EQ(read_renamed(good.substr(0, 31)).error().detail,
            static_cast<std::uint32_t>(RedoFault::bytes));
}

// --- made again ----------------------------------------------------------------------------------

struct Again : SomeCatalog {
  Result<void> apply(std::string_view record) {
    return apply_record(
        catalog, record,
        [this](const CreatedObject& created) {
          return catalog.restore<SomeMap>(created, [this](std::uint32_t id, std::string own) {
            return Result<std::shared_ptr<SomeMap>>(
                std::make_shared<SomeMap>(id, std::move(own), living));
          });
        },
        [](const RedoHead&, std::string_view) { return Result<void>(); });
  }
  void apply_made(std::uint32_t id, std::string_view name) {
    const CreatedObject object{ObjectKind::map, id, name};
    std::string record(created_bytes(object), '\0');
    write_created(std::as_writable_bytes(std::span(record)), object);
    ASSERT_TRUE(apply(record));
  }
  /// Applies what a checkpoint has of another catalogue (engine/store_copy.cpp).
  void copy(const Inventory& there) {
    for (const EntryPointer& entry : there.entries) apply_made(entry->id, entry->name);
    if (there.renames != 0) {
      const RenamedObject names{ObjectKind::map, 0, there.renames};
      std::string record(renamed_bytes(names), '\0');
      write_renamed(std::as_writable_bytes(std::span(record)), names);
      ASSERT_TRUE(apply(record));
    }
    const bool is_said = !there.entries.empty() && there.entries.back()->id == there.given;
    if (there.given != 0 && !is_said) {
      ASSERT_TRUE(catalog.drop_again({ObjectKind::map, there.given}));
    }
  }
};

/// A random operation on three names.
void act(SomeCatalog& some, base::Random& random) {
  const auto name = [&] { return std::string(1, static_cast<char>('a' + random.below(3))); };
  const std::string one = name();
  switch (random.below(5)) {
    case 0:
    case 1: static_cast<void>(some.create<SomeMap>(one)); return;
    case 2: static_cast<void>(some.catalog.drop(one)); return;
    default:
      static_cast<void>(
          some.catalog.rename(one, name(), kAny, static_cast<Displaced>(random.below(3))));
  }
}

TEST_F(CatalogRename, OfRecordsTheSameNamesComeAgain) {
  base::Random random(base::seed_from_environment(431));
  std::uint32_t renames = 0;
  for (int round = 0; round < 60; ++round) {
    SomeCatalog some;
    RecordingSink records;
    some.catalog.record_to(&records);
    const std::uint64_t steps = 1 + random.below(30);
    for (std::uint64_t i = 0; i < steps; ++i) act(some, random);
    Again again;
    for (int times = 0; times < 2; ++times) {  // the second time changes nothing
      for (const std::string_view record : records.records()) ASSERT_TRUE(again.apply(record));
      ASSERT_EQ(names_of(again.catalog), names_of(some.catalog));
      ASSERT_EQ(again.catalog.renames(), some.catalog.renames());
    }
    renames += some.catalog.renames();
  }
  EXPECT_GT(renames, 40u);
}

// The copy is of any moment after the first record that is applied, as a checkpoint's is.
TEST_F(CatalogRename, RecordsBehindACopyThatHasSomeOfThemComeToTheSame) {
  base::Random random(base::seed_from_environment(432));
  std::size_t known = 0;
  for (int round = 0; round < 200; ++round) {
    SomeCatalog some;
    RecordingSink records;
    some.catalog.record_to(&records);
    for (std::uint64_t i = random.below(10); i != 0; --i) act(some, random);
    const std::size_t first = records.count();
    for (std::uint64_t i = random.below(10); i != 0; --i) act(some, random);
    Again again;
    again.copy(some.catalog.inventory());
    for (std::uint64_t i = random.below(10); i != 0; --i) act(some, random);
    for (std::size_t i = first; i < records.count(); ++i) {
      const auto applied = again.apply(records.records()[i]);
      ASSERT_TRUE(applied) << text_of(static_cast<RedoFault>(applied.error().detail));
    }
    known += records.count() - first;
    ASSERT_EQ(names_of(again.catalog), names_of(some.catalog)) << "round " << round;
  }
  EXPECT_GT(known, 500u);
}

TEST_F(CatalogRename, WhatNoRecordsCanHaveMadeIsRefused) {
  Again again;
  const auto detail = [](const auto& done) {
    return done ? RedoFault::invalid : static_cast<RedoFault>(done.error().detail);
  };
  again.apply_made(1, "a");
  again.apply_made(2, "b");
  again.apply_made(3, "c");
  EXPECT_EQ(detail(again.catalog.rename_again({ObjectKind::map, 1, 1, 0, "b", ""})),
            RedoFault::name)
      << "another one has it";
  EXPECT_EQ(detail(again.catalog.rename_again({ObjectKind::map, 1, 1, 2, "b", "c"})),
            RedoFault::name);
  EXPECT_EQ(detail(again.catalog.rename_again({ObjectKind::table, 1, 1, 0, "d", ""})),
            RedoFault::kind);
  EXPECT_EQ(names_of(again.catalog), "a=1 b=2 c=3 ");
  // One object is gone, as in a copy that is ahead; the other gets its name all the same.
  ASSERT_TRUE(again.catalog.drop_again({ObjectKind::map, 1}));
  ASSERT_TRUE(again.catalog.rename_again({ObjectKind::map, 1, 1, 2, "b", "a"}));
  EXPECT_EQ(names_of(again.catalog), "a=2 c=3 ");
  ASSERT_TRUE(again.catalog.rename_again({ObjectKind::map, 3, 2, 1, "d", ""}));
  EXPECT_EQ(names_of(again.catalog), "a=2 d=3 ");
}

}  // namespace
}  // namespace espalier::catalog

// SPDX-License-Identifier: Apache-2.0
#include "catalog/object_redo.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "catalog/testing/recording_sink.hpp"
#include "catalog/testing/some_objects.hpp"

namespace espalier::catalog {
namespace {

std::string created_record() {
  RecordingSink sink;
  RedoRoom room = *reserve_created(&sink, {ObjectKind::table, 0, "name", "form!"});
  finish_created(room, 0x0102);
  return std::string(sink.records().front());
}

RedoFault fault_of(const Result<CreatedObject>& read) {
  if (read) return RedoFault::invalid;
  EXPECT_EQ(read.error().code, Code::corrupt);
  return static_cast<RedoFault>(read.error().detail);
}

template <class T>
std::string with(std::string record, std::size_t at, T value) {
  std::memcpy(record.data() + at, &value, sizeof value);
  return record;
}

TEST(ObjectRedo, GoldenBytes) {
  EXPECT_EQ(hex_of(created_record()),
            "2100000000000000 0201000002010000 0500000004000000 6e616d65666f726d 21");
  RecordingSink own;
  RedoRoom created = *reserve_created(&own, {ObjectKind::table, 0, "n", {}, Durability::none});
  finish_created(created, 3);
  EXPECT_EQ(hex_of(own.records().front()), "1900000000000000 0300000002010000 0000000001000100 6e");
  EXPECT_EQ(read_created(own.records().front())->durability, Durability::none);
  RecordingSink sink;
  RedoRoom room = *reserve_dropped(&sink);
  finish_dropped(room, {ObjectKind::sequencer, 7});
  EXPECT_EQ(hex_of(sink.records().front()), "1000000000000000 0700000003020000");
}

TEST(ObjectRedo, ReadsWhatItWrote) {
  const std::string record = created_record();
  const auto read = read_created(record);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kind, ObjectKind::table);
  EXPECT_EQ(read->id, 0x0102u);
  EXPECT_EQ(read->name, "name");
  EXPECT_EQ(read->form, "form!");
}

TEST(ObjectRedo, SaysWhatIsWrong) {
  const std::string record = created_record();
  EXPECT_EQ(fault_of(read_created({})), RedoFault::too_short);
  EXPECT_EQ(fault_of(read_created(record.substr(0, 15))), RedoFault::too_short);
  EXPECT_EQ(fault_of(read_created(record.substr(0, 32))), RedoFault::bytes);
  EXPECT_EQ(fault_of(read_created(record + 'x')), RedoFault::bytes);
  EXPECT_EQ(fault_of(read_created(with<std::uint64_t>(record.substr(0, 20), 0, 20))),
            RedoFault::too_short);
  EXPECT_EQ(fault_of(read_created(with<std::uint32_t>(record, 8, 0))), RedoFault::object);
  EXPECT_EQ(fault_of(read_created(with<std::uint8_t>(record, 12, 0))), RedoFault::kind);
  EXPECT_EQ(fault_of(read_created(with<std::uint8_t>(record, 13, 0))), RedoFault::type);
  EXPECT_EQ(fault_of(read_created(with<std::uint8_t>(record, 13, 2))), RedoFault::type);
  EXPECT_EQ(fault_of(read_created(with<std::uint8_t>(record, 14, 1))), RedoFault::reserved);
  EXPECT_EQ(fault_of(read_created(with<std::uint8_t>(record, 22, 4))), RedoFault::reserved);
  EXPECT_EQ(fault_of(read_created(with<std::uint8_t>(record, 23, 1))), RedoFault::reserved);
  EXPECT_EQ(fault_of(read_created(with<std::uint16_t>(record, 20, 0))), RedoFault::name);
  EXPECT_EQ(fault_of(read_created(with<std::uint16_t>(record, 20, 256))), RedoFault::name);
  EXPECT_EQ(fault_of(read_created(with<std::uint32_t>(record, 16, kFormBytesMax + 1))),
            RedoFault::form);
  EXPECT_EQ(fault_of(read_created(with<std::uint32_t>(record, 16, 4))), RedoFault::bytes);
  EXPECT_EQ(fault_of(read_created(with<std::uint32_t>(record, 16, 6))), RedoFault::bytes);
  EXPECT_EQ(read_dropped(record).error(),
            (Error{Code::corrupt, 0, static_cast<std::uint32_t>(RedoFault::type)}));
  EXPECT_EQ(text_of(RedoFault::place), "a record before this one is missing");
}

TEST(ObjectRedo, ReadsWhatWasDropped) {
  RecordingSink sink;
  RedoRoom room = *reserve_dropped(&sink);
  finish_dropped(room, {ObjectKind::table, 7});
  const std::string record(sink.records().front());
  EXPECT_EQ(*read_dropped(record), (DroppedObject{ObjectKind::table, 7}));
  EXPECT_FALSE(read_dropped(with<std::uint32_t>(record, 8, 0)));
  EXPECT_FALSE(read_dropped(record + 'x'));
}

// --- what the catalogue records ------------------------------------------------------------------

struct CatalogRedo : ::testing::Test, SomeCatalog {
  CatalogRedo() { catalog.record_to(&sink); }
  [[nodiscard]] std::string last() const { return std::string(sink.records().back()); }

  RecordingSink sink;
};

TEST_F(CatalogRedo, MakingAndDroppingAreRecorded) {
  const auto made = create<SomeMap>("one");
  ASSERT_TRUE(made);
  EXPECT_EQ((*made)->redo(), &sink);
  const std::string record = last();
  EXPECT_EQ(read_created(record)->id, (*made)->id);
  EXPECT_EQ(read_created(record)->name, "one");
  EXPECT_EQ(read_created(record)->kind, ObjectKind::map);
  ASSERT_TRUE(catalog.drop("one"));
  EXPECT_EQ(*read_dropped(last()), (DroppedObject{ObjectKind::map, (*made)->id}));
  EXPECT_EQ(sink.count(), 2u);
}

TEST_F(CatalogRedo, WhatFailsIsNotRecorded) {
  ASSERT_TRUE(create<SomeMap>("one"));
  EXPECT_EQ(create<SomeMap>("one").error().code, Code::already_exists);
  EXPECT_EQ(create<SomeMap>("").error().code, Code::invalid_argument);
  EXPECT_EQ(catalog.drop("two").error().code, Code::not_found);
  EXPECT_EQ(catalog.drop("one", ObjectKind::table).error().code, Code::wrong_kind);
  EXPECT_EQ(sink.count(), 1u);
  EXPECT_EQ(sink.rooms(), 0u);
}

TEST_F(CatalogRedo, WithoutRoomNothingIsDone) {
  ASSERT_TRUE(create<SomeMap>("one"));
  sink.refuse(true);
  EXPECT_EQ(create<SomeMap>("two").error().code, Code::busy);
  EXPECT_EQ(catalog.drop("one").error().code, Code::busy);
  EXPECT_EQ(catalog.names(), std::vector<std::string>{"one"});
  EXPECT_EQ(living, 1);
  sink.refuse(false);
  EXPECT_EQ((*create<SomeMap>("two"))->id, 2u);
}

TEST_F(CatalogRedo, OfWhatIsThereAlreadyTheEffectsAreRecordedToo) {
  catalog.record_to(nullptr);
  const auto made = create<SomeMap>("one");
  EXPECT_EQ((*made)->redo(), nullptr);
  catalog.record_to(&sink);
  EXPECT_EQ((*made)->redo(), &sink);
  EXPECT_EQ(sink.count(), 0u);
}

// --- and what it makes of such records -----------------------------------------------------------

struct CatalogRestore : ::testing::Test, SomeCatalog {
  Result<std::shared_ptr<SomeMap>> restore(std::uint32_t id, std::string_view name,
                                           ObjectKind kind = ObjectKind::map) {
    return catalog.restore<SomeMap>(
        CreatedObject{kind, id, name, {}},
        [this](std::uint32_t of, std::string own) -> Result<std::shared_ptr<SomeMap>> {
          return std::make_shared<SomeMap>(of, std::move(own), living);
        });
  }
  Result<EntryPointer> drop_again(std::uint32_t id, ObjectKind kind = ObjectKind::map) {
    return catalog.drop_again({kind, id});
  }
};

TEST_F(CatalogRestore, ObjectsComeBackUnderTheirIds) {
  EXPECT_EQ((*restore(3, "three"))->id, 3u);
  EXPECT_EQ((*restore(5, "five"))->id, 5u);
  EXPECT_EQ(catalog.find<SomeMap>(5)->name, "five");
  EXPECT_EQ((*create<SomeMap>("new"))->id, 6u);
  EXPECT_NE(*drop_again(5), nullptr);
  EXPECT_EQ(*drop_again(5), nullptr);
  EXPECT_EQ(catalog.names(), (std::vector<std::string>{"new", "three"}));
}

TEST_F(CatalogRestore, RecordsThatWereAppliedBeforeChangeNothing) {
  const auto made = restore(5, "name");
  ASSERT_TRUE(*restore(5, "name") == nullptr);
  EXPECT_EQ(catalog.find<SomeMap>(5), *made);
  // Dropped before this object was made, whether another has their name now or none.
  EXPECT_TRUE(*restore(4, "name") == nullptr);
  EXPECT_TRUE(*restore(3, "other") == nullptr);
  EXPECT_EQ(living, 1);
  ASSERT_TRUE(drop_again(5));
  EXPECT_TRUE(*restore(5, "name") == nullptr);
  EXPECT_EQ(catalog.names(), std::vector<std::string>{});
}

// An object that was made and dropped before the first record that is applied.
TEST_F(CatalogRestore, WhatWasDroppedDoesNotComeBack) {
  EXPECT_EQ(*drop_again(7), nullptr);
  EXPECT_TRUE(*restore(7, "name") == nullptr);
  EXPECT_TRUE(*restore(6, "name") == nullptr);
  EXPECT_EQ((*create<SomeMap>("new"))->id, 8u);
  EXPECT_EQ(*drop_again(~std::uint32_t{0}), nullptr);
  EXPECT_EQ(create<SomeMap>("next").error().code, Code::unsupported);  // no id is left
}

TEST_F(CatalogRestore, RefusesWhatNoRecordsCanHaveMade) {
  const auto detail = [](const auto& restored) {
    return restored ? RedoFault::invalid : static_cast<RedoFault>(restored.error().detail);
  };
  ASSERT_TRUE(restore(5, "name"));
  EXPECT_EQ(detail(restore(6, "name")), RedoFault::name);  // the first was never dropped
  EXPECT_EQ(detail(restore(5, "other")), RedoFault::name);
  EXPECT_EQ(detail(restore(7, "table", ObjectKind::table)), RedoFault::kind);
  EXPECT_EQ(detail(restore(0, "none")), RedoFault::object);
  EXPECT_EQ(detail(restore(8, "")), RedoFault::name);
  EXPECT_EQ(detail(drop_again(5, ObjectKind::table)), RedoFault::kind);
  EXPECT_EQ(detail(drop_again(0)), RedoFault::object);
  EXPECT_EQ(catalog.names(), std::vector<std::string>{"name"});
}

}  // namespace
}  // namespace espalier::catalog

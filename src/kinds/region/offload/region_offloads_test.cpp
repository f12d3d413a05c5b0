// SPDX-License-Identifier: Apache-2.0
// Calls on regions: each once, every invalid place and field, and the replies to a session without
// memory to write.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/places.hpp"
#include "base/temporary_folder.hpp"
#include "engine/principal_accounts.hpp"
#include "engine/tests/testing/items.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/region/format.hpp"
#include "kinds/region/offload/region_host.hpp"
#include "kinds/region/region_files.hpp"
#include "kinds/region/region_object.hpp"
#include "store/store_core.hpp"
#include "wire/object.hpp"

namespace espalier::offload {
namespace {

using wire::OffloadId;

constexpr std::uint64_t kMost64 = std::numeric_limits<std::uint64_t>::max();
constexpr auto kRegion = static_cast<std::uint32_t>(ObjectKind::region);

std::string number(std::uint64_t value) { return std::string(base::bytes_of(value)); }
std::string range(std::uint64_t offset, std::uint32_t bytes, std::uint32_t reserved = 0) {
  return std::string(base::bytes_of(region::RegionRange{offset, bytes, reserved}));
}
std::string swap(std::uint64_t offset, std::uint64_t compare, std::uint64_t to) {
  return std::string(base::bytes_of(region::RegionSwap{offset, compare, to}));
}

class RegionOffloads : public testing::Test {
 protected:
  Response call(OffloadId offload, std::uint32_t id, std::string_view key, std::string_view payload,
                std::uint32_t argument = 0) {
    return node_.call(client_, request_of(offload, id, ++tag_, argument), key, payload);
  }
  std::uint32_t create(std::string_view name, std::uint64_t bytes) {
    const Response made = call(OffloadId::region_create, 0, name, number(bytes));
    EXPECT_EQ(made.header.code, 0);
    EXPECT_EQ(made.payload, number(bytes));
    return static_cast<std::uint32_t>(made.header.version);
  }
  Response read(std::uint32_t id, std::uint64_t offset, std::uint32_t bytes) {
    return call(OffloadId::region_read, id, {}, range(offset, bytes));
  }
  Response write(std::uint32_t id, std::uint64_t offset, std::string_view bytes) {
    return call(OffloadId::region_write, id, {}, number(offset) + std::string(bytes));
  }
  void expect_error(const Response& response, Code code, std::uint32_t detail) {
    EXPECT_TRUE(response.answers());
    EXPECT_EQ(response.code(), code) << message({response.code(), 0, response.detail()});
    // Words may stand behind it.
    std::uint32_t found = 0;
    ASSERT_GE(response.payload.size(), sizeof found);
    std::memcpy(&found, response.payload.data(), sizeof found);
    EXPECT_EQ(found, detail);
  }

  SchedulerFixture node_;
  SchedulerFixture::Client& client_ = node_.connect();
  std::uint32_t tag_ = 0;
};

TEST_F(RegionOffloads, MakeOpenReadWriteAndChangeWords) {
  const std::uint32_t id = create("r", 24);
  const Response opened = call(OffloadId::region_open, 0, "r", {});
  EXPECT_EQ(opened.header.version, id);
  EXPECT_EQ(opened.payload, number(24));
  EXPECT_EQ(read(id, 0, 24).payload, std::string(24, '\0'));
  EXPECT_EQ(write(id, 3, "bytes").header.code, 0);
  EXPECT_EQ(read(id, 0, 10).payload, std::string("\0\0\0bytes\0\0", 10));
  EXPECT_EQ(read(id, 24, 0).header.code, 0);
  EXPECT_EQ(write(id, 24, {}).header.code, 0);
  EXPECT_EQ(call(OffloadId::region_fetch_add, id, {}, number(8) + number(5)).header.version, 0u);
  EXPECT_EQ(call(OffloadId::region_fetch_add, id, {}, number(8) + number(kMost64)).header.version,
            5u);
  EXPECT_EQ(call(OffloadId::region_compare_swap, id, {}, swap(8, 3, 9)).header.version, 4u);
  EXPECT_EQ(call(OffloadId::region_compare_swap, id, {}, swap(8, 4, 9)).header.version, 4u);
  EXPECT_EQ(read(id, 8, 8).payload, number(9));
}

TEST_F(RegionOffloads, PersistentOnesAreNeitherMappedNorModifiedByTheFabric) {
  const base::TemporaryFolder folder("/dev/shm");
  ASSERT_TRUE(node_.services().store.parts.of<region::RegionFiles>().open(folder.string(), true));
  const auto table = *fabric::RegionTable::create(7);
  const auto object = node_.catalog().find<region::RegionObject>(create("r", 24));
  ASSERT_TRUE(object && object->is_persistent());
  const PrincipalRef account = node_.services().principals.of("one");
  RegionHost maps(*table, 1, true, true, account);
  const auto refused = maps.open(*object, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unsupported);
  RegionHost writes(*table, 2, true, false, account);
  const auto granted = writes.open(*object, false);
  ASSERT_TRUE(granted);
  EXPECT_EQ(granted->flags, 0u);
}

// However many sessions it has; a dropped region's places come back.
TEST_F(RegionOffloads, OnePrincipalHasButSoManyKeys) {
  const auto table = *fabric::RegionTable::create(7);
  const auto object = node_.catalog().find<region::RegionObject>(create("r", 24));
  const auto other = node_.catalog().find<region::RegionObject>(create("s", 24));
  ASSERT_TRUE(object && other);
  const PrincipalRef account = node_.services().principals.of("one");
  RegionHost first(*table, 1, true, false, account);
  RegionHost second(*table, 2, true, false, account);
  auto& keys = account->parts.of<RegionShare>().keys;
  keys = RegionHost::kPrincipalMax - 1;
  EXPECT_TRUE(first.open(*object, false));
  EXPECT_TRUE(first.open(*object, true)) << "in the place of the one before";
  const auto refused = second.open(*other, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(base::places_of(refused.error()), base::Places::principal_region_keys);
  RegionHost of_others(*table, 3, true, false, node_.services().principals.of("two"));
  EXPECT_TRUE(of_others.open(*other, false));
  EXPECT_EQ(call(OffloadId::object_drop, 0, "r", {}, kRegion).header.code, 0);
  EXPECT_TRUE(second.open(*other, false));
  second.end();
  first.end();
  EXPECT_EQ(keys, RegionHost::kPrincipalMax - 1);
}

TEST_F(RegionOffloads, OneSessionHasButSoManyKeys) {
  const auto table = *fabric::RegionTable::create(7);
  RegionHost host(*table, 1, true, false, node_.services().principals.of("one"));
  const auto object = [&](std::uint32_t i) {
    return node_.catalog().find<region::RegionObject>(create("r" + std::to_string(i), 8));
  };
  for (std::uint32_t i = 0; i < RegionHost::kRegionsMax; ++i) {
    ASSERT_TRUE(host.open(*object(i), false)) << i;
  }
  const auto more = object(RegionHost::kRegionsMax);
  const auto refused = host.open(*more, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(base::places_of(refused.error()), base::Places::region_keys);
  RegionHost another(*table, 2, true, false, node_.services().principals.of("one"));
  EXPECT_TRUE(another.open(*more, false));
  EXPECT_EQ(call(OffloadId::object_drop, 0, "r3", {}, kRegion).header.code, 0);
  EXPECT_TRUE(host.open(*more, false)) << "a dropped region's place comes back";
}

TEST_F(RegionOffloads, OneProcessHasButSoManyKeys) {
  const auto table = *fabric::RegionTable::create(7);
  const auto object = node_.catalog().find<region::RegionObject>(create("r", 24));
  auto& keys = RegionHost::keys_of_process();
  const std::uint32_t before = keys;
  {
    RegionHost host(*table, 1, true, false, node_.services().principals.of("one"));
    keys = RegionHost::kProcessMax;
    const auto refused = host.open(*object, false);
    ASSERT_FALSE(refused);
    EXPECT_EQ(base::places_of(refused.error()), base::Places::process_region_keys);
    EXPECT_EQ(keys, RegionHost::kProcessMax) << "what is refused takes no place";
    keys = RegionHost::kProcessMax - 1;
    EXPECT_TRUE(host.open(*object, false));
    EXPECT_EQ(keys, RegionHost::kProcessMax);
    host.end();
    EXPECT_EQ(keys, RegionHost::kProcessMax - 1);
  }
  keys = before;
}

TEST_F(RegionOffloads, LongOnesAreOneMessage) {
  const std::uint32_t id = create("r", 100'000);
  const std::string bytes(region::kRequestBytesMax, 'x');
  EXPECT_EQ(write(id, 1, bytes).header.code, 0);
  EXPECT_EQ(read(id, 1, region::kRequestBytesMax).payload, bytes);
  EXPECT_EQ(read(id, 65'537, 8).payload, std::string(8, '\0'));
  expect_error(read(id, 0, region::kRequestBytesMax + 1), Code::invalid_argument,
               region::kRequestBytesMax + 1);
  EXPECT_EQ(write(id, 0, bytes + "x").code(), Code::invalid_argument);
  EXPECT_EQ(read(id, 0, 1).payload, std::string(1, '\0'));
}

TEST_F(RegionOffloads, RefusePlacesAndFieldsThatCannotBe) {
  const std::uint32_t id = create("r", 20);
  for (const std::uint64_t far : {std::uint64_t{13}, std::uint64_t{21}, kMost64 - 7, kMost64}) {
    expect_error(read(id, far, 8), Code::invalid_argument, 1);
    expect_error(write(id, far, "12345678"), Code::invalid_argument, 1);
  }
  for (const std::uint64_t far : {std::uint64_t{16}, std::uint64_t{24}, kMost64 - 7}) {
    expect_error(call(OffloadId::region_fetch_add, id, {}, number(far) + number(1)),
                 Code::invalid_argument, 1);
    expect_error(call(OffloadId::region_compare_swap, id, {}, swap(far, 0, 1)),
                 Code::invalid_argument, 1);
  }
  expect_error(call(OffloadId::region_fetch_add, id, {}, number(4) + number(1)),
               Code::invalid_argument, 2);
  expect_error(call(OffloadId::region_compare_swap, id, {}, swap(kMost64, 0, 1)),
               Code::invalid_argument, 2);
  expect_error(call(OffloadId::region_read, id, {}, range(0, 8, 7)), Code::invalid_argument, 7);
  expect_error(call(OffloadId::one_sided_region, id, {}, {}, 2), Code::invalid_argument, 2);
  expect_error(call(OffloadId::region_create, 0, "empty", number(0)), Code::invalid_argument, 0);
  EXPECT_EQ(call(OffloadId::region_create, 0, "large", number(kMost64)).code(),
            Code::out_of_memory);
  expect_error(call(OffloadId::region_open, 0, "large", {}), Code::not_found, 0);
  EXPECT_EQ(read(id, 0, 20).payload, std::string(20, '\0'));
}

TEST_F(RegionOffloads, AreObjectsWithNamesOfAll) {
  const std::uint32_t id = create("r", 8);
  constexpr auto kMap = static_cast<std::uint32_t>(ObjectKind::map);
  expect_error(call(OffloadId::region_create, 0, "r", number(8)), Code::already_exists, kRegion);
  expect_error(call(OffloadId::region_open, 0, "m", {}), Code::wrong_kind, kMap);
  expect_error(call(OffloadId::map_open, 0, "r", {}), Code::wrong_kind, kRegion);
  expect_error(read(node_.map(), 0, 8), Code::not_found, node_.map());
  const auto items = items_of(call(OffloadId::object_list, 0, {}, {}, kRegion).payload);
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].first, "r");
  wire::ObjectEntry entry{};
  ASSERT_EQ(items[0].second.size(), sizeof entry + 8);
  std::memcpy(&entry, items[0].second.data(), sizeof entry);
  EXPECT_EQ(entry.kind, kRegion);
  EXPECT_GE(entry.memory_bytes, 4096u);
  EXPECT_EQ(call(OffloadId::object_drop, 0, "r", {}, kRegion).header.code, 0);
  expect_error(read(id, 0, 8), Code::not_found, id);
  expect_error(write(id, 0, "x"), Code::not_found, id);
  expect_error(call(OffloadId::region_fetch_add, id, {}, number(0) + number(1)), Code::not_found,
               id);
  EXPECT_NE(create("r", 8), id);
}

// Rings in shared memory have no pair that reaches anything.
TEST_F(RegionOffloads, ASessionWithoutAPairIsToldToAsk) {
  const std::uint32_t id = create("r", 8);
  expect_error(call(OffloadId::one_sided_region, id, {}, {}), Code::unsupported, 0);
  expect_error(call(OffloadId::one_sided_region, id, {}, {}, 1), Code::unsupported, 0);
  EXPECT_EQ(node_.catalog().find<region::RegionObject>(id)->keys(), 0u);
}

}  // namespace
}  // namespace espalier::offload

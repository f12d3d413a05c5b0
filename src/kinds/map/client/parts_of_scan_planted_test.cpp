// SPDX-License-Identifier: Apache-2.0
// Parts of a scan that are walked as of other versions than the first are noticed (DESIGN §2.1
// rule 10).
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "espalier/map.hpp"
#include "kinds/map/client/parts_of_scan.hpp"

namespace espalier::client {
namespace {

constexpr int kLongItems = 300;

std::string long_key(int i) { return "key" + std::to_string(1000 + i); }

// Each part is longer than what it may keep, so all but the first go on behind the write that is
// made while the first is delivered. Returns what is wrong; empty: nothing.
std::string scan_beside_a_write(bool reverse) {
  Store store = *Store::open();
  Map map = *store.create_map("m", {.node_bytes = 1024});
  const std::string before(PartsOfScan::kPartBytes / 20, 'a');
  const std::string after(PartsOfScan::kPartBytes / 20, 'b');
  for (int i = 0; i < kLongItems; ++i) {
    if (!map.put(long_key(i), before)) return "cannot fill";
  }
  bool written = false;
  int items = 0;
  std::string wrong;
  const auto count = map.scan("", "",
                              [&](std::span<const Item> run) {
                                if (!written) {
                                  std::async(std::launch::async, [&] {
                                    WriteBatch batch;
                                    for (int i = 0; i < kLongItems; ++i)
                                      batch.put(long_key(i), after);
                                    written = map.write(batch).has_value();
                                  }).wait();
                                }
                                for (const Item& item : run) {
                                  const int number = reverse ? kLongItems - 1 - items : items;
                                  if (item.key != long_key(number))
                                    wrong = "out of order: " + std::string(item.key);
                                  if (item.value != before)
                                    wrong = std::string(item.key) + " is of a later version";
                                  ++items;
                                }
                                return wrong.empty();
                              },
                              {.reverse = reverse, .parts = 4});
  if (!wrong.empty()) return wrong;
  if (!written) return "nothing was written";
  if (!count || *count != kLongItems || items != kLongItems) return "not all items came";
  return {};
}

TEST(PartsOfScanRules, AllPartsAreOfOneVersion) {
  for (const bool reverse : {false, true}) {
    EXPECT_EQ(scan_beside_a_write(reverse), "");
    const base::Planted planted(tree::Bug::parts_of_many_versions);
    EXPECT_NE(scan_beside_a_write(reverse), "") << "the bug was not noticed";
  }
}

}  // namespace
}  // namespace espalier::client

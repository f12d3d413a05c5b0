// SPDX-License-Identifier: Apache-2.0
// Names in the world of a store (store_world.hpp): a few embedding tables that are made, dropped,
// and renamed over each other. The expected state is one table of names, since each of these is
// atomic.
#include <gtest/gtest.h>

#include "tests/durability/store_world.hpp"

namespace espalier::test {
namespace {

constexpr const char* kNames[] = {"name one", "name two", "name three"};

}  // namespace

std::string StoreLife::names_text() const {
  std::string text;
  for (const std::string name : kNames) {
    const auto entry = core_.catalog.find_any(name);
    if (entry != nullptr) text += name + "=" + std::to_string(entry->id) + " ";
  }
  return text;
}

void StoreLife::rename_some() {
  const std::string name = kNames[world_.random.below(std::size(kNames))];
  const std::string other = kNames[world_.random.below(std::size(kNames))];
  bool done = false;
  switch (world_.random.below(6)) {
    case 0: done = core_.catalog.drop(name).has_value(); break;
    case 1:
      done = embedding::create_embedding_table(core_.catalog, core_.pool, name,
                                               embedding::shape_of({.dimension = kNumbersOfARow}))
                 .has_value();
      break;
    default:
      done =
          core_.catalog
              .rename(name, other, ObjectKind::any, static_cast<Displaced>(world_.random.below(3)))
              .has_value();
      world_.renames += done ? 1 : 0;
  }
  if (!done) return;
  named_.push_back({0, world_.names.begin(names_text()), log_->writer().handed_over()});
}

void StoreLife::check_names() {
  const std::string text = names_text();
  const std::string may_be = world_.names.text();
  EXPECT_TRUE(world_.names.found(text)) << text << " not " << may_be;
}

}  // namespace espalier::test

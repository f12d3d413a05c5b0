// SPDX-License-Identifier: Apache-2.0
#include "catalog/samples.hpp"

#include <gtest/gtest.h>

#include "catalog/testing/some_objects.hpp"

namespace espalier::catalog {
namespace {

using Names = std::vector<std::string>;

Names names_of(const wire::SampledObjects& sampled) {
  Names names;
  for (const wire::SampledObject& object : sampled.objects) names.push_back(object.name);
  return names;
}

TEST(CatalogSamples, AreThoseOfTheChosenObjectsThatTakeMostMemory) {
  SomeCatalog some;
  for (const char* name : {"a", "bbb"}) ASSERT_TRUE(some.create<SomeMap>(name));
  for (const char* name : {"x", "zz", "yy"}) ASSERT_TRUE(some.create<SomeLater>(name));
  const auto chosen = [&](const SampleChoice& choice) {
    return names_of(samples_of(some.catalog, choice));
  };
  EXPECT_EQ(chosen({}), (Names{"bbb", "yy", "zz", "a", "x"}));
  EXPECT_EQ(chosen({.kind = ObjectKind::map}), (Names{"bbb", "a"}));
  EXPECT_EQ(chosen({.kind = ObjectKind::table}), Names{});
  EXPECT_EQ(chosen({.beyond_node_stats = true}), (Names{"yy", "zz", "x"}));
  EXPECT_EQ(chosen({.prefix = "z"}), Names{"zz"});
  EXPECT_EQ(chosen({.name = "x"}), Names{"x"});
  EXPECT_EQ(chosen({.prefix = "z", .name = "x"}), Names{}) << "another's";
  EXPECT_EQ(chosen({.objects_max = 2}), (Names{"bbb", "yy"}));
  EXPECT_EQ(samples_of(some.catalog, {.objects_max = 2}).count, 5u);
  EXPECT_EQ(samples_of(some.catalog, {.objects_max = 2}).left_out(), 3u);
}

TEST(CatalogSamples, AreWhatTheObjectSays) {
  SomeCatalog some;
  const auto later = some.create<SomeLater>("x").value();
  later->lookups = 9;
  const auto sampled = samples_of(some.catalog, {});
  ASSERT_EQ(sampled.objects.size(), 1u);
  const wire::SampledObject& object = sampled.objects.front();
  EXPECT_EQ(object.id, later->id);
  EXPECT_EQ(wire::kind_word(object), "kind_200");
  ASSERT_EQ(object.samples.size(), 4u);
  EXPECT_EQ(object.samples[1], (wire::Sample{"queued_bytes",
                                             "bytes",
                                             "Bytes that wait.",
                                             wire::SampleType::gauge,
                                             {{"queue", "in"}},
                                             3072}));
  EXPECT_EQ(object.samples[3].type, wire::SampleType::counter);
  EXPECT_EQ(object.samples[3].value, 9u);
}

}  // namespace
}  // namespace espalier::catalog

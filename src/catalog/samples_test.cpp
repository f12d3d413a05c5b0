// SPDX-License-Identifier: Apache-2.0
#include "catalog/samples.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "catalog/testing/some_objects.hpp"

namespace espalier::catalog {
namespace {

ObjectNames names_of(const wire::SampledObjects& sampled) {
  ObjectNames names;
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
  EXPECT_EQ(chosen({}), (ObjectNames{"bbb", "yy", "zz", "a", "x"}));
  EXPECT_EQ(chosen({.kind = ObjectKind::map}), (ObjectNames{"bbb", "a"}));
  EXPECT_EQ(chosen({.kind = ObjectKind::table}), ObjectNames{});
  EXPECT_EQ(chosen({.prefix = "z"}), ObjectNames{"zz"});
  EXPECT_EQ(chosen({.name = "x"}), ObjectNames{"x"});
  EXPECT_EQ(chosen({.prefix = "z", .name = "x"}), ObjectNames{}) << "another's";
  EXPECT_EQ(chosen({.objects_max = 2}), (ObjectNames{"bbb", "yy"}));
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

class LargeObject final : public Object {
 public:
  static constexpr auto kKind = static_cast<ObjectKind>(201);
  void set_dropped() override {}
  [[nodiscard]] std::string description() const override { return {}; }
  [[nodiscard]] ObjectNumbers numbers() const override { return {}; }
  void add_samples(SampleList& to) const override {
    const std::string help(wire::kSampleTextBytesMax, 'h');
    for (std::size_t i = 0; i < wire::kSamplesMax + 44; ++i) {
      to.gauge({"items", "", help}, i, {{"part", std::to_string(i) + std::string(400, 'p')}});
    }
  }
};

Catalog& fill(Catalog& catalog, int objects) {
  for (int i = 0; i < objects; ++i) {
    EXPECT_TRUE(catalog.create<LargeObject>("o" + std::to_string(10 + i), [](auto, auto) {
      return Result<std::shared_ptr<LargeObject>>(std::make_shared<LargeObject>());
    }));
  }
  return catalog;
}

// Data decide how many parts there are, and their names.
TEST(CatalogSamples, WhatIsTooLongIsCut) {
  Catalog catalog;
  const auto sampled = samples_of(fill(catalog, 1), {});
  ASSERT_EQ(sampled.objects.size(), 1u);
  const std::vector<wire::Sample>& samples = sampled.objects[0].samples;
  EXPECT_EQ(samples.size(), wire::kSamplesMax);
  EXPECT_EQ(samples[7].labels[0].value, "7" + std::string(wire::kSampleTextBytesMax - 1, 'p'));
}

TEST(CatalogSamples, AreNoMoreThanAnAnswerHasBytesFor) {
  Catalog catalog;
  const auto sampled = samples_of(fill(catalog, 20), {});
  const std::size_t one = wire::item_of(sampled.objects.at(0)).size();
  EXPECT_EQ(sampled.objects.size(), wire::kSamplesBytesMax / one);
  EXPECT_EQ(sampled.count, 20u);
  EXPECT_EQ(sampled.left_out(), 20 - wire::kSamplesBytesMax / one);
  const auto read = wire::read_sampled_objects(wire::items_of(sampled.objects));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->size(), sampled.objects.size());
}

TEST(CatalogSamples, AreTakenOneObjectAtATime) {
  SomeCatalog some;
  for (const char* name : {"a", "bb", "ccc"}) ASSERT_TRUE(some.create<SomeLater>(name));
  Sampling all(some.catalog, {});
  int steps = 1;
  while (all.step()) {
    if (steps == 4) {
      ASSERT_TRUE(some.catalog.drop("a"));
    }
    ++steps;
  }
  EXPECT_EQ(steps, 3 + 3);
  EXPECT_EQ(names_of(all.take()), (ObjectNames{"ccc", "bb", "a"})) << "as it was when they began";
  EXPECT_EQ(some.living, 2) << "nothing is kept";
  Sampling none(some.catalog, {.kind = ObjectKind::table});
  EXPECT_FALSE(none.step());
  EXPECT_EQ(none.take().count, 0u);
  Sampling one(some.catalog, {.name = "bb"});
  EXPECT_FALSE(one.step());
  EXPECT_EQ(names_of(one.take()), ObjectNames{"bb"});
}

}  // namespace
}  // namespace espalier::catalog

// SPDX-License-Identifier: Apache-2.0
// Golden bytes of samples, and what is not believed of them.
#include "wire/samples.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/bytes.hpp"

namespace espalier::wire {
namespace {

using namespace std::string_literals;

SampledObject some_object() {
  SampledObject object{static_cast<ObjectKind>(200), "queue", 77, "jobs", {}};
  object.samples.push_back(
      {"lost", "", "Gone.", SampleType::counter, {{"shard", "a"}, {"way", "\xff\n"}}, 0x0102});
  object.samples.push_back({"waiting_bytes", "bytes", "", SampleType::gauge, {}, 5});
  return object;
}

TEST(SamplesFormat, FieldsLieWhereTheDocumentDrawsThem) {
  EXPECT_EQ(base::bytes_of(SamplesWanted{1, 2, 3, 4}), "\1\0\0\0\2\3\4\0"s);
  EXPECT_EQ(base::bytes_of(SampledObjectEntry{1, 2, 3, 4}), "\1\2\3\0\4\0\0\0"s);
  EXPECT_EQ(base::bytes_of(SampleEntry{1, 2, 3, 4, 5, 6, 7}), "\1\0\0\0\0\0\0\0\2\3\4\5\6\0\7\0"s);
  EXPECT_EQ(base::bytes_of(SampleLabelEntry{1, 2, 3}), "\1\0\2\3"s);
  EXPECT_EQ(static_cast<int>(SampleType::counter), 1);
  EXPECT_EQ(static_cast<int>(SampleType::gauge), 2);
}

TEST(SamplesFormat, AnItemIsAnObject) {
  const std::string value =
      "\xc8\x05\2\0\0\0\0\0queue"
      "\2\1\0\0\0\0\0\0\1\2\4\0\5\0\0\0lostGone."
      "\1\0\5\0sharda\2\0\3\0way\xff\n"
      "\5\0\0\0\0\0\0\0\2\0\x0d\5\0\0\0\0waiting_bytesbytes"s;
  const std::string head =
      "\x4d\0\0\0\0\0\0\0"s + static_cast<char>(value.size()) + "\0\0\0\4\0\0\0"s;
  EXPECT_EQ(item_of(some_object()), head + "jobs" + value);
}

TEST(SamplesFormat, WhatIsWrittenIsRead) {
  SampledObject plain{ObjectKind::map, "map", 1, "\x1b", {}};
  const std::vector<SampledObject> objects{some_object(), plain};
  const auto read = read_sampled_objects(items_of(objects));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, objects);
  EXPECT_EQ(read_sampled_objects(""), std::vector<SampledObject>{});
}

TEST(SamplesFormat, TheLargestObjectFits) {
  SampledObject object{ObjectKind::map, "map", 1, std::string(kObjectNameBytesMax, 'n'), {}};
  Sample most{"",
              std::string(kSampleWordBytesMax, 'u'),
              std::string(kSampleTextBytesMax, 'h'),
              SampleType::gauge,
              {},
              ~std::uint64_t{0}};
  most.name = most.unit;
  for (std::size_t i = 0; i < kSampleLabelsMax; ++i) {
    std::string name(kSampleWordBytesMax, 'l');
    name.back() = static_cast<char>('a' + i);
    most.labels.push_back({name, std::string(kSampleTextBytesMax, 'v')});
  }
  object.samples.assign(kSamplesMax, most);
  ASSERT_TRUE(is_good(object));
  const auto read = read_sampled_objects(items_of({object}));
  ASSERT_TRUE(read && read->size() == 1);
  EXPECT_EQ(read->front(), object);
}

TEST(SamplesFormat, ACountOfObjectsLeftOutIsNeverNegative) {
  SampledObjects objects{5, {some_object()}};
  EXPECT_EQ(objects.left_out(), 4u);
  objects.count = 0;  // a node may say anything
  EXPECT_EQ(objects.left_out(), 0u);
}

TEST(Samples, NamesAreWordsOfMetrics) {
  for (const char* word : {"a", "lookups_2", "a__b_"}) EXPECT_TRUE(is_sample_word(word)) << word;
  for (const std::string& word : {""s, "_a"s, "2a"s, "A"s, "a-b"s, "a b"s, "a\x1b"s, "\xc3\xa4"s,
                                  "a\0"s, std::string(64, 'a')}) {
    EXPECT_FALSE(is_sample_word(word)) << word;
  }
  EXPECT_TRUE(ends_with_unit("queued_bytes", "bytes"));
  EXPECT_TRUE(ends_with_unit("bytes", "bytes"));
  EXPECT_TRUE(ends_with_unit("items", ""));
  EXPECT_FALSE(ends_with_unit("queuedbytes", "bytes"));
  EXPECT_FALSE(ends_with_unit("bytes_queued", "bytes"));
  EXPECT_FALSE(ends_with_unit("s", "bytes"));
  EXPECT_FALSE(ends_with_unit("a_\n", "\n"));
  EXPECT_TRUE(is_name_of_metrics("count"));
  EXPECT_FALSE(is_name_of_metrics("recount"));
}

TEST(Samples, AreRefusedForEachThingThatIsWrong) {
  using Change = std::function<void(SampledObject&)>;
  const Change changes[] = {
      [](SampledObject& of) { of.kind_name = "Queue"; },
      [](SampledObject& of) { of.kind_name = "\x1b[2J"; },
      [](SampledObject& of) { of.kind = ObjectKind::any; },
      [](SampledObject& of) { of.name.clear(); },
      [](SampledObject& of) { of.name.assign(256, 'n'); },
      [](SampledObject& of) { of.samples.resize(kSamplesMax + 1, of.samples[0]); },
      [](SampledObject& of) { of.samples[0].name = "lo st"; },
      [](SampledObject& of) { of.samples[0].name = ""; },
      [](SampledObject& of) { of.samples[0].name = "lost_total"; },
      [](SampledObject& of) { of.samples[0].name = "total"; },
      [](SampledObject& of) { of.samples[0].name = "lost_count"; },
      [](SampledObject& of) { of.samples[0].name = "sum"; },
      [](SampledObject& of) { of.samples[0].name = "lost_bucket"; },
      [](SampledObject& of) { of.samples[0].unit = "bytes"; },
      [](SampledObject& of) { of.samples[0].help.assign(256, 'h'); },
      [](SampledObject& of) { of.samples[0].type = SampleType::invalid; },
      [](SampledObject& of) { of.samples[0].labels[0].name = "way"; },
      [](SampledObject& of) { of.samples[0].labels[0].name = "queue"; },
      [](SampledObject& of) { of.samples[0].labels[0].name = "a\"b"; },
      [](SampledObject& of) { of.samples[0].labels[0].name = "way_hex"; },
      [](SampledObject& of) { of.samples[0].labels[0].value.assign(256, 'v'); },
      [](SampledObject& of) {
        for (char c = 'a'; c < 'i'; ++c) of.samples[0].labels.push_back({std::string(1, c), ""});
      },
  };
  ASSERT_TRUE(read_sampled_objects(item_of(some_object())));
  for (std::size_t i = 0; i < std::size(changes); ++i) {
    SampledObject object = some_object();
    changes[i](object);
    EXPECT_FALSE(read_sampled_objects(item_of(object))) << "change " << i;
  }
}

// Those of a later version: only their lengths are looked at.
TEST(Samples, OfTypesThatNobodyKnowsAreSkipped) {
  const SampledObject good = some_object();
  SampledObject later = good;
  Sample odd = good.samples[0];
  odd.type = static_cast<SampleType>(3);
  odd.name = "Odd name";
  odd.labels.resize(20, {"", "\x1b"});
  later.samples.insert(later.samples.begin() + 1, odd);
  EXPECT_FALSE(is_good(later));
  const std::string item = item_of(later);
  EXPECT_EQ(read_sampled_objects(item), std::vector<SampledObject>{good});
  for (std::size_t bytes = 1; bytes < item.size(); ++bytes) {
    EXPECT_FALSE(read_sampled_objects(std::string_view(item).substr(0, bytes))) << bytes;
  }
}

TEST(Samples, AreRefusedCutOffAnywhereOrWithMoreBehind) {
  const std::string item = item_of(some_object());
  for (std::size_t bytes = 1; bytes < item.size(); ++bytes) {
    EXPECT_FALSE(read_sampled_objects(std::string_view(item).substr(0, bytes))) << bytes;
  }
  EXPECT_FALSE(read_sampled_objects(item + "x"));
  std::string longer = item;
  longer[8] = static_cast<char>(longer[8] + 1);  // a value with a byte more
  EXPECT_FALSE(read_sampled_objects(longer + "x"));
}

TEST(Samples, AreRefusedWithBitsThatHaveNoMeaning) {
  const std::string item = item_of(some_object());
  const std::size_t entry = 16 + 4;
  for (const std::size_t reserved : {std::size_t{4}, std::size_t{14}, entry + 4, entry + 13 + 14}) {
    std::string changed = item;
    changed[reserved] = 1;
    EXPECT_FALSE(read_sampled_objects(changed)) << reserved;
  }
}

TEST(Samples, AreRefusedOfMoreObjectsThanAnAnswerHas) {
  const std::vector<SampledObject> most(kSampledObjectsMax, some_object());
  const std::string items = items_of(most);
  EXPECT_TRUE(read_sampled_objects(items));
  EXPECT_FALSE(read_sampled_objects(items + item_of(some_object())));
  EXPECT_FALSE(read_sampled_objects(std::string(kSamplesBytesMax + 1, '\0')));
}

}  // namespace
}  // namespace espalier::wire

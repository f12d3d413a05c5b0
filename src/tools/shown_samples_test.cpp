// SPDX-License-Identifier: Apache-2.0
#include "tools/shown_samples.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>

#include "tools/json_stats.hpp"

namespace espalier::tools {
namespace {

using wire::SampleType;

constexpr auto kLater = static_cast<ObjectKind>(200);

std::string object_text(const wire::SampledObject& object) {
  std::ostringstream out;
  print_object(out, object);
  return out.str();
}

TEST(ShownSamples, StandInColumnsWithTheirHelp) {
  const wire::SampledObject object{
      kLater,
      "hash",
      9,
      "users",
      {{"items", "", "Items.", SampleType::gauge, {}, 1234567},
       {"queued_bytes", "bytes", "Bytes that wait.", SampleType::gauge, {{"queue", "in"}}, 3072},
       {"longest_nanoseconds", "nanoseconds", "", SampleType::gauge, {}, 2500}}};
  EXPECT_EQ(object_text(object),
            "hash                   users\n"
            "items                  1,234,567  Items.\n"
            "queued_bytes{queue=in} 3.0 KiB    Bytes that wait.\n"
            "longest_nanoseconds    2.5 us\n");
}

TEST(ShownSamples, AKindWithoutANameHasItsNumber) {
  EXPECT_EQ(object_text({kLater, "", 9, "x", {}}), "kind 200    x\n");
  EXPECT_EQ(object_text({ObjectKind::map, "map", 9, "x", {}}), "map         x\n");
}

// What a node says may be anything.
TEST(ShownSamples, NothingSteersATerminal) {
  const std::string odd = "\x1b[2J\n\xff";
  const wire::SampledObject object{
      kLater, odd, 9, odd, {{odd, odd, odd, SampleType::counter, {{odd, odd}}, 1}}};
  const std::string text = object_text(object);
  EXPECT_EQ(std::ranges::count(text, '\n'), 2) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("\\x1b[2J\\n\\xff"), std::string::npos) << text;
  EXPECT_EQ(object_json(object).dump().find('\x1b'), std::string::npos);
}

TEST(ShownSamples, JsonHasAllOfThem) {
  const wire::SampledObject object{
      kLater,
      "",
      9,
      "\xff",
      {{"items", "", "Items.", SampleType::gauge, {}, ~std::uint64_t{0}},
       {"lost_bytes", "bytes", "Lost.", SampleType::counter, {{"a", "b"}, {"c", "\xfe"}}, 2}}};
  EXPECT_EQ(object_json(object).dump(),
            R"({"kind":"kind 200","name_hex":"ff","id":9,"samples":[)"
            R"({"name":"items","type":"gauge","help":"Items.","value":18446744073709551615},)"
            R"({"name":"lost_bytes","type":"counter","unit":"bytes","help":"Lost.",)"
            R"("labels":{"a":"b","c_hex":"fe"},"value":2}]})");
}

wire::Sample gauge(std::string sample, std::uint64_t value) {
  return {std::move(sample), "", "", SampleType::gauge, {}, value};
}

TEST(ShownSamples, KindsWithMembersHaveThemInJson) {
  EXPECT_EQ(
      members_json({ObjectKind::map, "map", 9, "m", {gauge("items", 3), gauge("feed_gaps", 1)}})
          .dump(),
      R"({"map":"m","items":3,"feed":{"gaps":1}})");
  EXPECT_EQ(
      members_json(
          {ObjectKind::table, "table", 9, "t", {gauge("queries_ended", 2), gauge("sent_rows", 5)}})
          .dump(),
      R"({"table":"t","queries":{"ended":2},"rows_sent":5})");
  EXPECT_EQ(
      members_json(
          {ObjectKind::sequencer, "sequencer", 9, "s", {gauge("adds", 4), gauge("sealed", 1)}})
          .dump(),
      R"({"sequencer":"s","node_adds":4,"sealed":true})");
}

// Nor are members of others taken by samples that are called like them.
TEST(ShownSamples, MembersOfWhatANodeMadeUpAreSamples) {
  for (const ObjectKind kind : {ObjectKind::map, ObjectKind::table, ObjectKind::sequencer}) {
    const std::string own(name(kind));
    wire::SampledObject object{kind, own, 9, "n", {}};
    for (const std::string& made_up :
         {own, own + "_hex", std::string("feed"), std::string("feed_odd"), std::string("queries"),
          std::string("samples"), std::string("writes_per_s")}) {
      object.samples.push_back(gauge(made_up, 1));
    }
    const auto json = members_json(object);
    EXPECT_EQ(json.size(), 2U) << json;
    EXPECT_EQ(json[own], "n");
    ASSERT_EQ(json["samples"].size(), 7U) << json;
    EXPECT_EQ(json["samples"][1]["name"], own + "_hex");
  }
}

TEST(ShownSamples, NoMemberTakesThePlaceOfAnother) {
  wire::Sample labelled = gauge("items", 1);
  labelled.labels = {{"queue", "in"}};
  const wire::SampledObject object{
      ObjectKind::map, "map", 9, "m", {labelled, gauge("items", 2), gauge("items", 3), labelled}};
  const auto json = members_json(object);
  EXPECT_EQ(json["items"], 2);
  ASSERT_EQ(json["samples"].size(), 3U) << json;
  EXPECT_EQ(json["samples"][0]["labels"]["queue"], "in");
  EXPECT_EQ(json["samples"][1]["value"], 3);
}

}  // namespace
}  // namespace espalier::tools

// SPDX-License-Identifier: Apache-2.0
#include "tools/shown_samples.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

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

}  // namespace
}  // namespace espalier::tools

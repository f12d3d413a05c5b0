// SPDX-License-Identifier: Apache-2.0
// What no call of the C API lets out: exceptions of every kind.
#include "capi/c_call.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

namespace espalier::client::c {
namespace {

template <class Exception>
espalier_code run_and_throw(Exception exception) {
  return run("a_call", {}, [&]() -> Result<void> { throw exception; });
}

TEST(CCall, TellsWhatWasThrown) {
  EXPECT_EQ(run_and_throw(std::bad_alloc()), ESPALIER_OUT_OF_MEMORY);
  EXPECT_EQ(std::string(espalier_error_message()).find("a_call: The process has no memory"), 0u);
  const std::system_error refused(std::make_error_code(std::errc::too_many_files_open));
  EXPECT_EQ(run_and_throw(refused), ESPALIER_SYSTEM);
  EXPECT_EQ(espalier_error_detail(), static_cast<std::uint32_t>(EMFILE));
  EXPECT_EQ(run_and_throw(std::logic_error("a defect")), ESPALIER_INTERNAL);
  EXPECT_STREQ(espalier_error_message(), "a_call: a defect");
  EXPECT_EQ(run_and_throw(7), ESPALIER_INTERNAL);
  EXPECT_EQ(espalier_error_code(), ESPALIER_INTERNAL);
}

TEST(CCall, TellsTheFirstThingThatIsWrongAndDoesNothing) {
  bool done = false;
  const auto work = [&]() -> Result<void> {
    done = true;
    return {};
  };
  EXPECT_EQ(run("a_call", {{}, {"this", "is wrong"}, {"that", "too", Code::corrupt}}, work),
            ESPALIER_INVALID_ARGUMENT);
  EXPECT_STREQ(espalier_error_message(), "a_call: this is wrong");
  EXPECT_EQ(run("a_call", {{"that", "too", Code::corrupt}}, work), ESPALIER_CORRUPT);
  EXPECT_FALSE(done);
  EXPECT_EQ(run("a_call", {}, work), ESPALIER_OK);
  EXPECT_TRUE(done);
  EXPECT_EQ(espalier_error_code(), ESPALIER_CORRUPT);  // success changes nothing
}

TEST(CCall, LongWordsAreCut) {
  EXPECT_EQ(run_and_throw(std::runtime_error(std::string(10'000, 'x'))), ESPALIER_INTERNAL);
  EXPECT_EQ(std::string(espalier_error_message()).size(), 511u);
}

}  // namespace
}  // namespace espalier::client::c

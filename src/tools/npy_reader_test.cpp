// SPDX-License-Identifier: Apache-2.0
#include "tools/npy_reader.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tools/testing/npy_text.hpp"

namespace espalier::tools {
namespace {

/// Gives three bytes at a time.
class SlowSource final : public base::ByteSource {
 public:
  explicit SlowSource(std::string text) : text_(std::move(text)) {}
  Result<std::size_t> read(std::span<char> into) override {
    const std::size_t some = std::min({into.size(), text_.size() - at_, std::size_t{3}});
    std::memcpy(into.data(), text_.data() + at_, some);
    at_ += some;
    return some;
  }

 private:
  const std::string text_;
  std::size_t at_ = 0;
};

std::string wrong_with(const std::string& file) {
  SlowSource source(file);
  NpyReader reader(source);
  const auto opened = reader.open();
  if (!opened) return opened.error();
  std::vector<float> row(8);
  for (;;) {
    const auto some = reader.read(row);
    if (!some) return some.error();
    if (*some == 0) return "nothing";
  }
}

TEST(NpyReader, ReadsRowsOfEachVersion) {
  for (const int version : {1, 2, 3}) {
    SlowSource source(npy_text({1, 2, 3, 4, 5, 6}, 3, version));
    NpyReader reader(source);
    EXPECT_EQ(reader.open(), (NpyShape{2, 3}));
    std::vector<float> rows(5);  // room for one of three
    EXPECT_EQ(reader.read(rows), 1u);
    EXPECT_EQ(rows[2], 3);
    EXPECT_EQ(reader.read(rows), 1u);
    EXPECT_EQ(rows[2], 6);
    EXPECT_EQ(reader.read(rows), 0u);
  }
}

TEST(NpyReader, SaysWhatIsWrong) {
  const std::string good = npy_text({1, 2, 3, 4}, 2);
  EXPECT_EQ(wrong_with(good), "nothing");
  EXPECT_EQ(wrong_with(""), "it is no NumPy file (.npy)");
  EXPECT_EQ(wrong_with("id,name\n1,apple\n"), "it is no NumPy file (.npy)");
  EXPECT_EQ(wrong_with(good.substr(0, 9)), "it has no header of a NumPy file");
  EXPECT_EQ(wrong_with(good.substr(0, 30)), "it ends within its header");
  EXPECT_EQ(wrong_with(good.substr(0, good.size() - 1)), "it ends within row 1 of 2");
  EXPECT_EQ(wrong_with(good + "x"), "it goes on behind its last row");
  std::string later = good;
  later[6] = 4;
  EXPECT_EQ(wrong_with(later), "it is of an unknown version of .npy");
  const auto header = [](const char* text) {
    const auto parsed = parse_npy_header(text);
    return parsed ? "nothing" : parsed.error();
  };
  EXPECT_EQ(header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }"), "nothing");
  EXPECT_EQ(header("{'shape':(3,4),'fortran_order':False,'descr':'<f4'}"), "nothing");
  EXPECT_NE(header("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }"), "nothing");
  EXPECT_NE(header("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }"), "nothing");
  for (const char* shape :
       {"(3,)", "()", "(3, 4, 5)", "(3", "(-1, 4)", "3, 4", "(99999999999999999999, 4)"}) {
    const std::string text =
        std::string("{'descr': '<f4', 'fortran_order': False, 'shape': ") + shape + ", }";
    EXPECT_EQ(header(text.c_str()), "it is no matrix of rows and columns") << shape;
  }
}

}  // namespace
}  // namespace espalier::tools

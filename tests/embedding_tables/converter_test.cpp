// SPDX-License-Identifier: Apache-2.0
// The script that converts the state of a DLRM: states of NumPy of each type of floats, and of
// PyTorch, for which a module of the tests stands, make the same file; wrong ones are named.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/temporary_folder.hpp"
#include "kinds/embedding/testing/ranking_files.hpp"

namespace espalier::test {
namespace {

const std::string kConverterFolder = ESPALIER_SOURCE_DIR "/tests/embedding_tables/converter";

std::string bytes_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Converter : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(run("python3 " + kConverterFolder + "/states.py ."), 0) << output_;
  }
  /// Runs a shell command in the folder; what it says is in output_. Returns its exit code.
  int run(const std::string& command) {
    const std::string line = "cd '" + folder_.string() + "' && { " + command + "; } >output 2>&1";
    const int status = std::system(line.c_str());  // NOLINT: the test's own words
    output_ = bytes_in((folder_ / "output").string());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  int convert(const std::string& words) {
    return run("PYTHONDONTWRITEBYTECODE=1 PYTHONPATH='" + kConverterFolder +
               "' python3 " ESPALIER_SOURCE_DIR "/scripts/dlrm_to_espalier.py " + words);
  }
  [[nodiscard]] std::string file(const std::string& name) const {
    return bytes_in((folder_ / name).string());
  }
  /// What states.py describes, as a file of a model.
  static embedding::RankingParts parts() {
    embedding::RankingParts made;
    made.dense = 3;
    made.dimension = 8;
    made.bottom = {4, 8};
    made.top = {2, 1};
    made.tables = {"emb_0", "emb_1"};
    constexpr int kFloats = 3 * 4 + 4 + 4 * 8 + 8 + 11 * 2 + 2 + 2 * 1 + 1;
    for (int i = 0; i < kFloats; ++i) {
      made.floats.push_back(static_cast<float>(i * 7 % 33 - 16) / 8);
    }
    return made;
  }

  base::TemporaryFolder folder_;
  std::string output_;
};

TEST_F(Converter, StatesOfEachTypeMakeTheSameModel) {
  for (const char* const state : {"f2.npz", "f4.npz", "f8.npz", "torch.pt"}) {
    ASSERT_EQ(convert(std::string(state) + " model"), 0) << state << ": " << output_;
    EXPECT_EQ(file("model"), parts().file()) << state;
  }
}

TEST_F(Converter, TablesAreNamedAndRowsAveragedAsIsWished) {
  embedding::RankingParts wanted = parts();
  wanted.tables = {"users", "items of the shop"};
  wanted.reduction = Reduction::mean;
  ASSERT_EQ(convert("f8.npz model --tables 'users,items of the shop' --mean --rows rows"), 0)
      << output_;
  EXPECT_EQ(file("model"), wanted.file());
  const std::string rows = file("rows/items of the shop.npy");
  ASSERT_EQ(rows.substr(0, 6), "\x93NUMPY");
  const std::vector<float> fives(8, 5);
  const std::string last(reinterpret_cast<const char*>(fives.data()), 32);
  EXPECT_EQ(rows.substr(rows.size() - 32), last) << "of float32, the last row of the second table";
  EXPECT_EQ(rows.size() % 64, 5u * 32 % 64) << "NumPy wants rows to begin at 64 bytes";
}

TEST_F(Converter, WhatIsWrongIsSaid) {
  const auto fails = [&](const std::string& words, const std::string& why) {
    EXPECT_NE(convert(words + " model"), 0) << words;
    EXPECT_NE(output_.find(why), std::string::npos) << words << ": " << output_;
    EXPECT_EQ(output_.find("Traceback"), std::string::npos) << words << ": " << output_;
  };
  fails("whole.npz", "values are <f2, <f4, <f8, and these are <i4");
  fails("columns.npz", "numpy.ascontiguousarray(array) has rows");
  fails("large.npz", "bot_l.0.bias: 1e+300 is too large for float32");
  fails("none.npz", "this is no NumPy array");
  fails("cut.npz", "bytes, and its shape takes");
  fails("bias.npz", "bot_l.0.bias is not there, or has another shape");
  fails("top.npz", "the state has no top_l.N.weight");
  fails("tables.npz", "the state has 0 tables");
  fails("chain.npz", "bot_l.2.weight has the shape (8, 5)");
  fails("rows.npz", "the embedding tables have rows of different lengths");
  fails("inputs.npz", "the top network takes 12 inputs, and not 8 and 3 products");
  fails("f4.npz --tables a", "the state has 2 tables, and 1 names are given");
  fails("missing.npz", "cannot read missing.npz: No such file or directory");
  fails("empty.npz", "empty.npz is no file of NumPy's");
}

}  // namespace
}  // namespace espalier::test

// SPDX-License-Identifier: Apache-2.0
// ./test itself, and its checks of budgets and of skipped tests.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace espalier::source {
namespace {

namespace fs = std::filesystem;
const std::string kSources = ESPALIER_SOURCE_DIR;

struct Ended {
  int status = -1;
  std::string output;
};

class Scripts : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "scripts-XX").string() + "XXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream in(folder_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  [[nodiscard]] Ended run(const std::string& command) const {
    const std::string all = "{ " + command + "; } >" + path("output") + " 2>&1";
    const int status = std::system(all.c_str());  // NOLINT: the test's own words
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read("output")};
  }
  [[nodiscard]] Ended check_budgets(const std::string& budgets, const std::string& arguments) {
    write("budgets", budgets);
    return run("ESPALIER_BUDGETS=" + path("budgets") + " " + kSources +
               "/scripts/check-budgets.sh " + arguments);
  }

 private:
  fs::path folder_;
};

TEST_F(Scripts, BudgetsAreHeldAgainstTheirTotal) {
  const std::string head = "# Seconds.\nprogram release tsan\ntotal 30 10\n";
  EXPECT_EQ(check_budgets(head + "a_test 20 10\nb_test 10 -\n", "").status, 0);
  const Ended over = check_budgets(head + "a_test 20 10\nb_test 10 1\n", "");
  EXPECT_NE(over.status, 0);
  EXPECT_EQ(over.output, "tsan: the budgets are 11 seconds together, and may be 10\n");
  EXPECT_NE(check_budgets(head + "a_test 20\n", "").status, 0);
  EXPECT_NE(check_budgets(head + "a_test 20 x\n", "").status, 0);
  EXPECT_NE(check_budgets("program release\na_test 20\n", "").status, 0);
}

TEST_F(Scripts, AProgramOverTwiceItsBudgetIsNamedAndOverFourTimesItFails) {
  const std::string budgets = "program release tsan\ntotal 30 10\na_test 20 -\nb_test 1 10\n";
  write("seconds/a_test.One", "0m0.001s 0m0.002s\n0m6.500s 0m1.400s\n");
  write("seconds/a_test.Two_Three", "0m0.001s 0m0.002s\n0m11.000s 0m1.000s\n");
  write("seconds/b_test.One", "0m0.001s 0m0.002s\n0m10.900s 0m0.100s\n");
  const Ended within = check_budgets(budgets, "release " + path(""));
  EXPECT_EQ(within.status, 0);
  EXPECT_EQ(within.output.find("preset release"), std::string::npos) << within.output;
  write("seconds/b_test.One", "0m0.001s 0m0.002s\n0m14.001s 0m0.000s\n");
  const Ended named = check_budgets(budgets, "release " + path(""));
  EXPECT_EQ(named.status, 0);
  EXPECT_NE(named.output.find("preset release: b_test\n"), std::string::npos) << named.output;
  write("seconds/b_test.One", "0m0.001s 0m0.002s\n0m29.001s 0m0.000s\n");
  EXPECT_NE(check_budgets(budgets, "release " + path("")).status, 0);
  EXPECT_NE(check_budgets(budgets, "tsan " + path("")).output.find("preset tsan: a_test\n"),
            std::string::npos);
}

TEST_F(Scripts, AProgramMayTakeMoreWhereAllProgramsDo) {
  const std::string budgets = "program release\ntotal 60\na_test 40\nb_test 8\n";
  write("seconds/a_test.One", "0m0.001s 0m0.002s\n1m4.000s 0m0.000s\n");
  write("seconds/b_test.One", "0m0.001s 0m0.002s\n0m30.000s 0m0.000s\n");
  EXPECT_EQ(check_budgets(budgets, "release " + path("")).status, 0);
  // Nothing excuses all of them.
  write("seconds/a_test.One", "0m0.001s 0m0.002s\n2m7.000s 0m0.000s\n");
  const Ended named = check_budgets(budgets, "release " + path(""));
  EXPECT_EQ(named.status, 0);
  EXPECT_NE(named.output.find("all programs took 157 s, and may take 48"), std::string::npos)
      << named.output;
  write("seconds/a_test.One", "0m0.001s 0m0.002s\n4m43.000s 0m0.000s\n");
  EXPECT_NE(check_budgets(budgets, "release " + path("")).status, 0);
}

TEST_F(Scripts, ARunIsWrittenDownAndKeepsItsStatus) {
  const std::string script = kSources + "/scripts/run-suite.sh " + path("") + " a_test.Each/Suite ";
  EXPECT_EQ(run(script + "sh -c 'exit 3'").status, 3);
  // The last argument is the path of GoogleTest's report.
  const auto writes = [&](const std::string& tests) {
    return run(script + "sh -c 'echo \"<testsuites tests=\\\"" + tests +
               "\\\">\" >\"${0#--gtest_output=xml:}\"'");
  };
  EXPECT_EQ(writes("1").status, 0);
  const Ended nothing_ran = writes("0");
  EXPECT_NE(nothing_ran.status, 0);
  EXPECT_NE(nothing_ran.output.find("no test is named so"), std::string::npos);
  EXPECT_NE(read("seconds/a_test.Each_Suite").find("\n0m0.0"), std::string::npos);
}

TEST_F(Scripts, ASkippedCaseNeedsAReason) {
  const auto check = [&](const std::string& line) {
    write("log",
          "Command: \"/x/run-suite.sh\" \"/x\" \"tree_test.S\" \"/x/tree_test\" "
          "\"--gtest_filter=S.*\"\n" +
              line + "\n");
    return run(kSources + "/scripts/check-skips.sh release " + path("log"));
  };
  EXPECT_EQ(check("[       OK ] All/SearchKits.Find/avx512 (0 ms)").status, 0);
  EXPECT_EQ(check("[  SKIPPED ] All/SearchKits.Find/avx512 (0 ms)").status, 0);
  const Ended refused = check("[  SKIPPED ] Geometry.IsLaidOut (0 ms)");
  EXPECT_EQ(refused.output,
            "skipped without a reason in tests/skips.txt: tree_test.Geometry.IsLaidOut\n");
  EXPECT_NE(refused.status, 0);
  EXPECT_NE(check("  YOU HAVE 1 DISABLED TEST").status, 0);
  EXPECT_EQ(check("[  SKIPPED ] 1 test, listed below:").status, 0);
}

/// The inside of the fenced block behind these words of docs/testing.md.
std::string block_behind(const std::string& words) {
  std::ifstream in(kSources + "/docs/testing.md");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::string fence = "\n```sh\n";
  const std::size_t at = text.find(fence, text.find(words));
  if (at == std::string::npos) return "no block behind: " + words;
  const std::size_t begin = at + fence.size();
  return text.substr(begin, text.find("```\n", begin) - begin);
}

/// ./test in a folder of its own, where the programs that it calls write down their arguments.
class TestScript : public Scripts {
 protected:
  void SetUp() override {
    Scripts::SetUp();
    ASSERT_EQ(run("cp " + kSources + "/test " + path("test") + "; mkdir " + path("scripts") +
                  "; cp " + kSources + "/scripts/common.sh " + path("scripts"))
                  .status,
              0);
    for (const char* script :
         {"install-packages.sh", "install-node-modules.sh", "slow-tests.sh", "load-test.sh",
          "check-skips.sh", "check-budgets.sh", "run-fuzzers.sh"}) {
      program(std::string("scripts/") + script, "");
    }
    // A preset is configured before it is built, and both must succeed, by "a && b".
    program("bin/cmake",
            "case $1 in\n"
            "  --preset) mkdir -p build/$2/bin; printf 'cmake %s && ' \"$*\" >>typed ;;\n"
            "  *) echo \"cmake $*\" >>typed ;;\n"
            "esac\n");
    program("bin/ctest", "echo '100% tests passed'\n");
    program("build/plain/bin/regex_test", "");
  }

  /// What it types at cmake, a line for each preset.
  std::string typed(const std::string& arguments) {
    const Ended ended =
        run("cd " + path("") + " && PATH=" + path("bin") + ":$PATH ./test " + arguments);
    EXPECT_EQ(ended.status, 0) << ended.output;
    return read("typed");
  }

 private:
  void program(const std::string& name, const std::string& text) const {
    write(name, "#!/bin/sh\n" + text);
    fs::permissions(path(name), fs::perms::owner_all);
  }
};

TEST_F(TestScript, TypesWhatTheDocumentsPrint) {
  EXPECT_EQ(typed(""), block_behind("`./test` types"));
}

TEST_F(TestScript, OfAllBuildsEveryPresetAsTheDocumentsPrint) {
  const std::string printed = block_behind("`./test all` builds every preset whole");
  EXPECT_EQ(typed("all"), printed);
  std::ifstream in(kSources + "/CMakePresets.json");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::size_t presets = 0;
  constexpr std::string_view kPreset = "\"configurePreset\": \"";
  const std::size_t end = text.find("\"testPresets\"");
  for (std::size_t at = text.find("\"buildPresets\""); (at = text.find(kPreset, at)) < end;) {
    at += kPreset.size();
    const std::string name = text.substr(at, text.find('"', at) - at);
    EXPECT_NE(printed.find("cmake --build --preset " + name + "\n"), std::string::npos) << name;
    ++presets;
  }
  EXPECT_GE(presets, 4u);
}

TEST(RunScript, BuildsAllThatIsInstalled) {
  std::ifstream in(kSources + "/run");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_NE(text.find("build_preset release --target espalier_run"), std::string::npos);
}

}  // namespace
}  // namespace espalier::source

// SPDX-License-Identifier: Apache-2.0
// Checks the layering: every include of the project against layers.txt.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/source/layer_rules.hpp"
#include "tests/source/source_file.hpp"
#include "tests/source/style_rules.hpp"

namespace espalier::source {
namespace {

TEST(Layers, NoFileOfTheProjectIncludesUpwardOrSideways) {
  const std::filesystem::path root = ESPALIER_SOURCE_DIR;
  const Layers layers = Layers::parse(read_text(root / "layers.txt"));
  const auto files = read_sources(root, {"src", "include", "bench", "example", "tests"},
                                  {".hpp", ".cpp", ".h", ".c"});
  ASSERT_FALSE(files.empty());
  EXPECT_EQ(describe(check_layers(layers, files)), "");
}

// Layers would let them include what lies below the public headers too.
TEST(Layers, ExamplesIncludeOnlyWhatIsInstalled) {
  for (const SourceFile& file : read_sources(ESPALIER_SOURCE_DIR, {"example"}, {".cpp", ".c"})) {
    for (const std::string_view line : split_lines(file.text)) {
      EXPECT_TRUE(!line.starts_with("#include \"") || line.starts_with("#include \"espalier/"))
          << file.path << ": " << line;
    }
  }
}

// Layers would let them include the node's side of calls, which applications then would link.
TEST(Layers, TheClientLibraryIncludesNothingOfTheEngine) {
  for (const char* folder :
       {"src/reach", "src/channel/embedded", "src/channel/rings", "src/channel/one_sided",
        "src/kinds/map/remote", "src/kinds/map/client", "src/kinds/table/remote",
        "src/kinds/table/client", "src/kinds/sequencer/client", "src/kinds/hash/client",
        "src/kinds/region/client", "src/kinds/embedding/client", "src/kinds/program", "src/shards",
        "src/index", "src/client", "src/capi"}) {
    int looked_at = 0;
    for (const SourceFile& file : read_sources(ESPALIER_SOURCE_DIR, {folder}, {".hpp", ".cpp"})) {
      if (is_beside_a_source(file.path)) continue;
      ++looked_at;
      for (const std::string_view line : split_lines(file.text)) {
        if (!line.starts_with("#include \"")) continue;
        EXPECT_FALSE(line.starts_with("#include \"engine/") || line.contains("/offload/"))
            << file.path << ": " << line;
      }
    }
    EXPECT_GT(looked_at, 0) << folder;
  }
}

/// The kind whose header this line includes; none: it includes no kind's.
std::string_view kind_named_by(std::string_view line) {
  constexpr std::string_view kKinds = "kinds/";
  const std::string_view include = quoted_include(line);
  const std::size_t end = include.find('/', kKinds.size());
  if (!include.starts_with(kKinds) || end == std::string_view::npos) return {};
  return include.substr(kKinds.size(), end - kKinds.size());
}

/// The sources of the product that include a kind's header from outside its folder, by kind.
std::map<std::string, std::set<std::string>> namings() {
  std::map<std::string, std::set<std::string>> by_kind;
  for (const SourceFile& file : read_sources(ESPALIER_SOURCE_DIR, {"src"}, {".hpp", ".cpp"})) {
    if (is_beside_a_source(file.path) || file.path.contains("/tests/")) continue;
    for (const std::string_view line : split_lines(file.text)) {
      const std::string kind(kind_named_by(line));
      if (kind.empty() || file.path.starts_with("src/kinds/" + kind + "/")) continue;
      by_kind[kind].insert(file.path);
    }
  }
  return by_kind;
}

// Each further place is one more to find when a kind is added.
TEST(Layers, KindsAreNamedOutsideTheirFoldersOnlyWhereTheListSaysWhy) {
  const auto reasons = parse_reasons(
      read_text(std::filesystem::path(ESPALIER_SOURCE_DIR) / "tests/kinds_named.txt"));
  std::set<std::string> needed;
  for (const auto& [kind, paths] : namings()) {
    for (const std::string& path : paths) {
      const auto covers = [&](const auto& reason) {
        return path == reason.first || path.starts_with(reason.first + "/");
      };
      const auto reason = std::ranges::find_if(reasons, covers);
      EXPECT_TRUE(reason != reasons.end()) << path << " names the kind " << kind;
      if (reason != reasons.end()) needed.insert(reason->first);
    }
  }
  for (const auto& [path, reason] : reasons) EXPECT_TRUE(needed.contains(path)) << path;
}

// What docs/design/kinds.md counts, of the kinds that came without numbers of their own in a
// node's: two places that register it, and its command and C API.
TEST(Layers, AKindCanBeMovedByTheFilesThatAreCounted) {
  const auto by_kind = namings();
  EXPECT_EQ(by_kind.at("hash"),
            (std::set<std::string>{"src/client/store_hash_maps.cpp", "src/kinds/at_device.cpp",
                                   "src/kinds/kinds.cpp"}));
  EXPECT_EQ(by_kind.at("sequencer"),
            (std::set<std::string>{"src/client/store_sequencers.cpp", "src/kinds/kinds.cpp"}));
}

constexpr std::string_view kLayers =
    "# comment\n"
    "\n"
    "0 base src/base\n"
    "0 base include/lib/error.hpp\n"
    "4 tree src/tree\n"
    "4 hash src/hash\n"
    "4.1 log/bytes src/log/bytes\n"
    "4.2 log/write src/log/write\n"
    "4.1 heap/bytes src/heap/bytes\n"
    "7 client include/lib\n"
    "99 tests tests\n";

/// The check's findings for one more file in a small project.
std::string check(const std::string& path, const std::string& include) {
  const std::vector<SourceFile> files = {{"src/base/bytes.hpp", ""},
                                         {"include/lib/error.hpp", ""},
                                         {"src/tree/map.hpp", ""},
                                         {"src/hash/map.hpp", ""},
                                         {"include/lib/lib.hpp", ""},
                                         {"other/odd.hpp", ""},
                                         {"src/log/bytes/b.hpp", ""},
                                         {"src/log/write/w.hpp", ""},
                                         {"src/heap/bytes/h.hpp", ""},
                                         {"src/tree/testing/t.hpp", ""},
                                         {path, "// first\n" + include + "\n"}};
  std::string findings;
  for (const Finding& finding : check_layers(Layers::parse(kLayers), files)) {
    if (finding.path == path) findings += describe({finding});
  }
  return findings;
}

TEST(Layers, DownwardAndOwnIncludesAreFine) {
  EXPECT_EQ(check("src/tree/x.cpp", "#include \"base/bytes.hpp\""), "");
  EXPECT_EQ(check("src/tree/x.cpp", "#include \"tree/map.hpp\""), "");
  EXPECT_EQ(check("src/base/x.cpp", "#include \"lib/error.hpp\""), "");
  EXPECT_EQ(check("tests/x.cpp", "#include \"lib/lib.hpp\""), "");
}

TEST(Layers, AnUpwardIncludeIsRefusedWithFileLineAndBothLayers) {
  EXPECT_EQ(check("src/base/x.hpp", "#include \"tree/map.hpp\""),
            "src/base/x.hpp:2: base (layer 0) includes \"tree/map.hpp\" of tree (layer 4): "
            "upward\n");
  EXPECT_NE(check("src/tree/x_test.cpp", "#include \"lib/lib.hpp\""), "");
  EXPECT_NE(check("src/tree/x.cpp", "  #  include  \"lib/lib.hpp\"  // why"), "");
}

TEST(Layers, ASidewaysIncludeIsRefusedOutsideTests) {
  EXPECT_EQ(check("src/tree/x.cpp", "#include \"hash/map.hpp\""),
            "src/tree/x.cpp:2: tree (layer 4) includes \"hash/map.hpp\" of hash (layer 4): "
            "sideways\n");
  EXPECT_EQ(check("src/tree/x_test.cpp", "#include \"hash/map.hpp\""), "");
  EXPECT_EQ(check("src/tree/x_bench.cpp", "#include \"hash/map.hpp\""), "");
}

TEST(Layers, RoomsOfAModuleLieAboveEachOther) {
  EXPECT_EQ(check("src/log/write/x.cpp", "#include \"log/bytes/b.hpp\""), "");
  EXPECT_EQ(check("src/log/bytes/x.cpp", "#include \"log/write/w.hpp\""),
            "src/log/bytes/x.cpp:2: log/bytes (layer 4.1) includes \"log/write/w.hpp\" of "
            "log/write (layer 4.2): upward\n");
  EXPECT_EQ(check("src/log/bytes/x_test.cpp", "#include \"log/write/w.hpp\""), "");
  EXPECT_NE(check("src/log/write/x.cpp", "#include \"tree/map.hpp\"").find("sideways"),
            std::string::npos);
  EXPECT_NE(check("src/tree/x.cpp", "#include \"log/bytes/b.hpp\"").find("sideways"),
            std::string::npos);
}

// As kinds of objects are to each other, whichever of their rooms is the lower one.
TEST(Layers, RoomsOfAnotherModuleAreRefused) {
  EXPECT_EQ(check("src/log/write/x.cpp", "#include \"heap/bytes/h.hpp\""),
            "src/log/write/x.cpp:2: log/write (layer 4.2) includes \"heap/bytes/h.hpp\" of "
            "heap/bytes (layer 4.1): sideways\n");
  EXPECT_NE(check("src/heap/bytes/x.cpp", "#include \"log/write/w.hpp\""), "");
  EXPECT_EQ(check("src/log/write/x_test.cpp", "#include \"heap/bytes/h.hpp\""), "");
}

TEST(Layers, TestSupportIsForTestsAlone) {
  EXPECT_EQ(check("src/tree/x_test.cpp", "#include \"tree/testing/t.hpp\""), "");
  EXPECT_EQ(check("src/tree/testing/x.hpp", "#include \"tree/testing/t.hpp\""), "");
  EXPECT_EQ(check("tests/x.cpp", "#include \"tree/testing/t.hpp\""), "");
  EXPECT_EQ(check("src/tree/x.cpp", "#include \"tree/testing/t.hpp\""),
            "src/tree/x.cpp:2: includes \"tree/testing/t.hpp\", which is for tests alone\n");
}

// include/lib is the client's, but its error.hpp lies in layer 0.
TEST(Layers, TheLongestPrefixWinsAndEndsAtAWholePart) {
  EXPECT_EQ(check("src/tree/x.cpp", "#include \"lib/error.hpp\""), "");
  EXPECT_NE(check("src/tree/x.cpp", "#include \"lib/lib.hpp\""), "");
  EXPECT_NE(check("src/treehouse/x.cpp", ""), "");
}

TEST(Layers, UnknownFilesAreRefused) {
  EXPECT_NE(check("src/tree/x.cpp", "#include \"tree/gone.hpp\"").find("no file of"),
            std::string::npos);
  EXPECT_NE(check("src/tree/x.cpp", "#include \"other/odd.hpp\"").find("no line of layers.txt"),
            std::string::npos);
  EXPECT_NE(check("stray/x.cpp", "").find("no line of layers.txt"), std::string::npos);
}

TEST(Layers, ABrokenListIsRefused) {
  EXPECT_THROW(static_cast<void>(Layers::parse("0 base\n")), std::runtime_error);
  EXPECT_THROW(static_cast<void>(Layers::parse("zero base src/base\n")), std::runtime_error);
  EXPECT_THROW(static_cast<void>(Layers::parse("4. base src/base\n")), std::runtime_error);
  EXPECT_THROW(static_cast<void>(Layers::parse("0 base src/base more\n")), std::runtime_error);
}

}  // namespace
}  // namespace espalier::source

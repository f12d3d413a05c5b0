// SPDX-License-Identifier: Apache-2.0
// The README and the documents are executable: their programs are compiled and run, every command
// in them runs as typed and prints what it should, and no link is dead.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "memory/shared_memory.hpp"
#include "tests/support/played_document.hpp"

namespace espalier {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = ESPALIER_SOURCE_DIR;

std::string read(const fs::path& path) {
  const std::string text = test::text_of_file(path);
  return path.extension() == ".1" ? test::document_of_manual(text) : text;
}

/// The insides of all fenced blocks of a language, in order.
std::vector<std::string> blocks(const std::string& text, const std::string& language) {
  std::vector<std::string> found;
  for (const test::Block& block : test::blocks_of(text)) {
    if (block.language == language) found.push_back(block.text);
  }
  return found;
}

/// The text without its fenced blocks.
std::string prose(const std::string& text) {
  std::string kept;
  bool fenced = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view line = std::string_view(text).substr(at, end - at);
    const bool fence = line.starts_with("```");
    if (!fenced && !fence) kept += line;
    fenced = fenced != fence;
    at = end;
  }
  return kept;
}

TEST(Readme, ItsProgramIsTheOneThatIsBuilt) {
  const auto programs = blocks(read(kRoot / "README.md"), "cpp");
  ASSERT_EQ(programs.size(), 1u);
  EXPECT_EQ(programs.front(), read(kRoot / "example/first_map.cpp"));
}

TEST(Readme, TheOffloadOfTheDocumentsIsTheOneThatIsTested) {
  const auto programs = blocks(read(kRoot / "docs/offloads.md"), "cpp");
  ASSERT_EQ(programs.size(), 2u);
  // The test install.package builds it, outside the tree.
  EXPECT_EQ(programs.back(), read(kRoot / "tests/consumer/offload.cpp"));
  const std::string source = read(kRoot / "src/engine/tests/example_offload_test.cpp");
  EXPECT_NE(source.find("// [docs/offloads.md]\n" + programs.front() + "// [docs/offloads.md]\n"),
            std::string::npos);
}

TEST(Readme, TheProgramOfDurableStoresIsTheOneThatIsBuilt) {
  const auto programs = blocks(read(kRoot / "docs/durability.md"), "cpp");
  ASSERT_EQ(programs.size(), 1u);
  EXPECT_EQ(programs.front(), read(kRoot / "example/durable_store.cpp"));
}

TEST(Readme, TheProgramOfTablesIsTheOneThatIsBuilt) {
  const auto programs = blocks(read(kRoot / "docs/tables.md"), "cpp");
  ASSERT_FALSE(programs.empty());  // the others are parts of one
  EXPECT_EQ(programs.front(), read(kRoot / "example/first_table.cpp"));
}

/// All documents, relative to the root.
std::vector<fs::path> documents() {
  std::vector<fs::path> found = {"README.md", "ARCHITECTURE.md", "CHANGELOG.md"};
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "docs")) {
    const fs::path kind = entry.path().extension();
    if (kind == ".md" || kind == ".1") found.push_back(fs::relative(entry.path(), kRoot));
  }
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "src")) {
    if (entry.path().extension() == ".md") found.push_back(fs::relative(entry.path(), kRoot));
  }
  return found;
}

// Its purpose, its main parts, what it may include: on one page, to which ARCHITECTURE.md or the
// page of the kinds refers.
TEST(Readme, EachFolderOfSourcesHasAPage) {
  for (const fs::path& parent : {fs::path("src"), fs::path("src/kinds")}) {
    const fs::path list = parent == "src" ? "ARCHITECTURE.md" : parent / "README.md";
    const std::string listed = read(kRoot / list);
    for (const auto& entry : fs::directory_iterator(kRoot / parent)) {
      if (!entry.is_directory()) continue;
      const std::string page = (parent / entry.path().filename() / "README.md").string();
      EXPECT_TRUE(fs::exists(kRoot / page)) << page;
      EXPECT_NE(listed.find(page), std::string::npos) << list << " has no link to " << page;
    }
  }
}

/// What is not typed here, by how it begins.
struct NotTyped {
  const char* document;
  const char* begin;
  const char* why;
};
constexpr NotTyped kNotTyped[] = {
    {"README.md", "./run ", "minutes; tests/commands/run_*_test.cpp have it tiny"},
    {"README.md", "./test ", "hours; tests/scripts_test.cpp looks at what it types"},
    {"README.md", "g++ ", "an application is wanted; the test install.pkgconfig has one"},
    {"README.md", "build/release/bin/espalier-bench ", "minutes; bench_test runs each, tiny"},
    {"docs/benchmarks.md", "espalier-bench switch ", "hours; bench_test runs each, tiny"},
    {"docs/experiments.md", "espalier-bench switch ", "hours; bench_test runs each, tiny"},
    {"docs/chains.md", "espalier chain create --members etcd://192",
     "machines of a network are wanted; tests/chains has members of one"},
    {"docs/chains.md", "ESPALIER_SECRET_FILE=/etc/espalier/members.secret ", "as chain create"},
    {"docs/command.md", "espalier switch status --control s.sock --at unix:tree.sock --every ",
     "until it is stopped; src/tools/switch_command_test.cpp stops one"},
    {"docs/command.md", "espalier top --at ",
     "a terminal is wanted; tests/commands/top_test.cpp has one"},
    {"docs/man/espalier-bench.1", "espalier-bench ", "minutes; bench_test runs each, tiny"},
    {"docs/switches.md", "build/release/bin/espalier-bench ", "minutes; bench_test, tiny"},
    {"docs/design/index_in_network.md", "p4c-bm2-ss ", "p4c is no package"},
    {"docs/design/index_in_network.md", "simple_switch ", "the model of a switch is no package"},
    {"docs/design/index_in_network.md", "until echo | simple_switch_CLI ", "as simple_switch"},
    {"docs/design/index_in_network.md", "printf 'table_add ", "as simple_switch"},
    {"docs/testing.md", "cmake --preset ", "hours; tests/scripts_test.cpp holds ./test to it"},
    {"docs/testing.md", "ctest --preset ", "an hour; ./test types it with options of its own"},
    {"docs/testing.md", "ESPALIER_TEST_SET=quick ctest ", "minutes; so does ./test"},
    {"docs/testing.md", "ESPALIER_FEW_SEEDS=10 ctest ", "minutes, with all cores busy"},
    {"docs/testing.md", "build/release/bin/tree_test ", "a program that ./test runs"},
    {"docs/testing.md", "ESPALIER_SEED=42 build/release/bin/system_test ", "as tree_test"},
    {"docs/testing.md", "scripts/slow-tests.sh", "an hour; ./test all runs it"},
    {"docs/testing.md", "scripts/load-test.sh", "minutes; ./test all runs it"},
    {"docs/testing.md", "ESPALIER_FUZZ_SECONDS=600 scripts/run-fuzzers.sh ",
     "an hour; ./test runs it"},
    {"docs/testing.md", "build/clang/fuzz/", "clang's build is wanted, and an input it broke at"},
};

bool is_typed(const fs::path& document, const std::string& command) {
  return std::ranges::none_of(kNotTyped, [&](const NotTyped& not_typed) {
    return document == not_typed.document && command.starts_with(not_typed.begin);
  });
}

/// Where there is something to type.
std::vector<fs::path> documents_that_are_typed() {
  std::vector<fs::path> found;
  for (const fs::path& document : documents()) {
    bool typed = false;
    for (const test::Block& block : test::blocks_of(read(kRoot / document))) {
      for (const test::Typed& typing : test::commands_of(block)) {
        typed = typed || is_typed(document, typing.command);
      }
    }
    if (typed) found.push_back(document);
  }
  return found;
}

TEST(Readme, EveryReasonNotToTypeACommandIsNeeded) {
  for (const NotTyped& not_typed : kNotTyped) {
    EXPECT_STRNE(not_typed.begin, "") << "no document is left out as a whole";
    bool found = false;
    for (const test::Block& block : test::blocks_of(read(kRoot / not_typed.document))) {
      for (const test::Typed& typed : test::commands_of(block)) {
        found = found || typed.command.starts_with(not_typed.begin);
      }
    }
    EXPECT_TRUE(found) << not_typed.document << ": " << not_typed.begin;
  }
}

TEST(Readme, NoDocumentHasACommandWhereNobodyTypesIt) {
  for (const fs::path& document : documents()) {
    EXPECT_THAT(test::untyped_commands_of(read(kRoot / document)), ::testing::IsEmpty())
        << document << ": into a block of ```sh or ```console, or of a manual's .EX";
  }
}

TEST(Readme, ACommandWhereNobodyTypesItIsFound) {
  using ::testing::ElementsAre;
  using ::testing::IsEmpty;
  EXPECT_THAT(test::untyped_commands_of("As in\n\n    espalier get a\n    $ ls\n\n\t./run\n"),
              ElementsAre("    espalier get a", "    $ ls", "\t./run"));
  EXPECT_THAT(test::untyped_commands_of("```\nespalier\nA=1 B= build/x y\n```\n    cmake .\n"),
              ElementsAre("espalier", "A=1 B= build/x y", "    cmake ."));
  EXPECT_THAT(test::untyped_commands_of("- a list\n  ```sh\n  ls\n  ```\n~~~\n~~~\n"),
              ElementsAre("  ```sh", "  ```", "~~~", "~~~"));
  EXPECT_THAT(test::untyped_commands_of("```bash\nespalier top\n```\n```console\n$ ls\n```\n"),
              ElementsAre("espalier top"));
  EXPECT_THAT(test::untyped_commands_of("espalier is a tree\n- it\n  espalier\n```sh\n./run\n```\n"
                                        "```cpp\nespalier::Map map;\n```\n    espaliered fruit\n"),
              IsEmpty());
}

TEST(Readme, ExamplesOfManualsAreCommands) {
  const std::string manual = test::document_of_manual(
      ".SH EXAMPLES\n.EX\nespalier get \\-\\-at a b\n.EE\n.nf\nespalier top\n.fi\n");
  ASSERT_EQ(test::blocks_of(manual).size(), 2u);
  const auto typed = test::commands_of(test::blocks_of(manual).front());
  ASSERT_EQ(typed.size(), 1u);
  EXPECT_EQ(typed.front().command, "espalier get --at a b");
  EXPECT_THAT(test::untyped_commands_of(manual), ::testing::ElementsAre("espalier top"));
}

/// By whom a document is typed.
class DocumentsSlow : public ::testing::TestWithParam<std::tuple<fs::path, bool>> {};

TEST_P(DocumentsSlow, CommandsRunAsTheyAreTyped) {
  const auto& [document, as_other] = GetParam();
  // tests/skips.txt lists these.
  if (as_other && ::geteuid() != 0) GTEST_SKIP() << "only root can type as another user";
  // The other typing of the same document wants the same ports.
  const memory::Descriptor alone(::open((kRoot / document).c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(alone.number(), LOCK_EX), 0);
  test::Workplace workplace(fs::path(ESPALIER_PROGRAM).parent_path(), kRoot, as_other);
  for (const test::Block& block : test::blocks_of(read(kRoot / document))) {
    for (const test::Typed& typed : test::commands_of(block)) {
      if (!is_typed(document, typed.command)) continue;
      const std::string shown = workplace.type(typed.command);
      if (typed.shown) {
        EXPECT_EQ(shown, *typed.shown) << typed.command;
      }
    }
  }
}

std::vector<std::tuple<fs::path, bool>> typings() {
  std::vector<std::tuple<fs::path, bool>> all;
  for (const fs::path& document : documents_that_are_typed()) {
    for (const bool as_other : {false, true}) all.emplace_back(document, as_other);
  }
  return all;
}

std::string typing_name(const ::testing::TestParamInfo<std::tuple<fs::path, bool>>& info) {
  std::string name = std::get<0>(info.param).stem().string();
  std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name + (std::get<1>(info.param) ? "_by_another_user" : "");
}

INSTANTIATE_TEST_SUITE_P(Of, DocumentsSlow, ::testing::ValuesIn(typings()), typing_name);

TEST(Readme, NoLinkOfTheDocumentsLeadsNowhere) {
  for (const fs::path& document : documents()) {
    const std::string text = prose(read(kRoot / document));
    for (std::size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at)) {
      at += 2;
      const std::string target = text.substr(at, text.find_first_of(")#", at) - at);
      if (target.empty() || target.find("://") != std::string::npos) continue;
      const fs::path file = kRoot / document.parent_path() / target;
      EXPECT_TRUE(fs::exists(file)) << document << ": " << target;
    }
  }
}

TEST(Readme, EverySourceThatTheDocumentsNameExists) {
  const std::regex source("`((src|include|bench|tests|example|scripts|cmake)/[A-Za-z0-9_./]+)`");
  std::size_t named = 0;
  for (const fs::path& document : documents()) {
    const std::string text = prose(read(kRoot / document));
    for (std::sregex_iterator at(text.begin(), text.end(), source), end; at != end; ++at) {
      EXPECT_TRUE(fs::exists(kRoot / (*at)[1].str())) << document << ": " << (*at)[1].str();
      ++named;
    }
  }
  EXPECT_GT(named, 50u);
}

/// The paths of all files of the project, each with a slash before it.
std::vector<std::string> all_files() {
  std::vector<std::string> found;
  for (const char* folder : {"src", "include", "bench", "tests", "example", "scripts", "cmake",
                             "docs", "dist", "integrations", "dataplane"}) {
    if (!fs::exists(kRoot / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      if (entry.is_regular_file()) {
        found.push_back("/" + fs::relative(entry.path(), kRoot).generic_string());
      }
    }
  }
  for (const auto& entry : fs::directory_iterator(kRoot)) {
    if (entry.is_regular_file()) found.push_back("/" + entry.path().filename().string());
  }
  return found;
}

// By its name alone, or with as much of its path as one likes. `x.cpp` and its like stand for any.
TEST(Readme, EveryFileThatTheDocumentsNameExists) {
  const std::regex name("`([A-Za-z0-9_][A-Za-z0-9_./-]*\\.(hpp|cpp|h|md|txt|sh|awk|cmake|py))`");
  const std::vector<std::string> files = all_files();
  std::size_t named = 0;
  for (const fs::path& document : documents()) {
    if (document == "CHANGELOG.md") continue;  // which reports the past
    const std::string text = prose(read(kRoot / document));
    for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at) {
      const std::string wanted = "/" + (*at)[1].str();
      if (wanted.starts_with("/x.") || wanted.starts_with("/x_")) continue;
      const auto is_it = [&](const std::string& file) { return file.ends_with(wanted); };
      EXPECT_TRUE(std::ranges::any_of(files, is_it)) << document << ": " << (*at)[1].str();
      ++named;
    }
  }
  EXPECT_GT(named, 100u);
}

}  // namespace
}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// The style guide as a test: what a machine can check, nobody needs to argue about.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/source/header_rules.hpp"
#include "tests/source/posix_rules.hpp"
#include "tests/source/source_file.hpp"
#include "tests/source/style_rules.hpp"
#include "tests/source/unity_names.hpp"

namespace espalier::source {
namespace {

const std::filesystem::path kRoot = ESPALIER_SOURCE_DIR;

void append(std::vector<Finding>& all, const std::vector<Finding>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

TEST(Style, EverySourceOfTheProjectKeepsTheRules) {
  const auto long_files = parse_reasons(read_text(kRoot / "tests/long_files.txt"));
  const auto files = read_sources(kRoot, {"src", "include", "bench", "tests", "cmake", "example"},
                                  {".hpp", ".cpp"});
  ASSERT_FALSE(files.empty());
  std::vector<Finding> findings;
  for (const SourceFile& file : files) {
    append(findings, check_text(file));
    append(findings, check_code(file, long_files));
  }
  EXPECT_EQ(describe(findings), "");
}

TEST(Style, BuildFilesAndScriptsKeepTheRulesForText) {
  auto files = read_sources(kRoot, {"cmake", "scripts", "tests"}, {".cmake", ".sh", ".txt", ".in"});
  for (const char* path : {"CMakeLists.txt", "run", "test", ".ci/run"}) {
    files.push_back({path, read_text(kRoot / path)});
  }
  std::vector<Finding> findings;
  for (const SourceFile& file : files) {
    if (file.path.find("/corpus/") == std::string::npos) append(findings, check_text(file));
  }
  EXPECT_EQ(describe(findings), "");
}

TEST(Style, SourcesInCKeepTheRulesForText) {
  const auto files = read_sources(kRoot, {"include", "example", "tests"}, {".h", ".c"});
  EXPECT_GE(files.size(), 3u);
  std::vector<Finding> findings;
  for (const SourceFile& file : files) append(findings, check_text(file));
  EXPECT_EQ(describe(findings), "");
}

TEST(Style, NoSourceHasARefusedName) {
  const auto refused = parse_reasons(read_text(kRoot / "tests/refused_names.txt"));
  ASSERT_FALSE(refused.empty());
  const auto files = read_sources(kRoot, {"src", "include", "bench", "tests", "cmake", "example"},
                                  {".hpp", ".cpp", ".h", ".c"});
  ASSERT_FALSE(files.empty());
  std::vector<Finding> findings;
  for (const SourceFile& file : files) append(findings, check_names(file, refused));
  EXPECT_EQ(describe(findings), "") << "tests/refused_names.txt has the words to use";
}

// Folders of tests/unworded_folders.txt wait for it.
TEST(Style, NoCommentHasARefusedWord) {
  const auto refused = parse_reasons(read_text(kRoot / "tests/refused_words.txt"));
  const auto later = parse_reasons(read_text(kRoot / "tests/unworded_folders.txt"));
  ASSERT_FALSE(refused.empty());
  const auto files = read_sources(kRoot, {"src", "include"}, {".hpp", ".cpp", ".h"});
  ASSERT_FALSE(files.empty());
  std::vector<Finding> findings;
  std::map<std::string, std::size_t> waiting;
  for (const SourceFile& file : files) {
    const auto found = check_comment_words(file, refused);
    // Of two that hold it the inner one, which comes later.
    const auto outer = std::ranges::find_if(
        later.rbegin(), later.rend(),
        [&](const auto& entry) { return file.path.starts_with(entry.first + "/"); });
    if (outer == later.rend()) {
      append(findings, found);
    } else {
      waiting[outer->first] += found.size();
    }
  }
  EXPECT_EQ(describe(findings), "") << "tests/refused_words.txt has the words to use";
  for (const auto& [folder, reason] : later) {
    EXPECT_NE(waiting[folder], 0u) << folder << " need not wait any more";
  }
}

TEST(Style, CallsOfTheOperatingSystemAreQualified) {
  const auto names = parse_posix_names(read_text(kRoot / "tests/posix_calls.txt"));
  ASSERT_TRUE(names.contains("read"));
  const auto files = read_sources(
      kRoot, {"src", "include", "bench", "tests", "example", "dataplane"}, {".hpp", ".cpp"});
  ASSERT_FALSE(files.empty());
  EXPECT_EQ(describe(check_posix_calls(files, names)), "");
}

TEST(Style, SourcesOfOneFolderHaveNoNameTwice) {
  const auto files = read_sources(kRoot, {"src", "bench", "tests"}, {".cpp"});
  ASSERT_FALSE(files.empty());
  EXPECT_EQ(describe(check_unity_names(files)), "");
}

TEST(Style, FewHeadersLieBehindThoseOfHandlersAndOfTheClient) {
  const auto files = read_sources(kRoot, {"src", "include"}, {".hpp", ".cpp"});
  EXPECT_GT(std::ranges::count_if(files, serves_calls), 20);
  EXPECT_GT(std::ranges::count_if(files, makes_public_calls), 5);
  EXPECT_EQ(describe(check_headers_behind(files)), "") << "docs/design/kinds.md says why";
}

TEST(Style, EveryEntryOfTheListOfLongFilesIsNeeded) {
  for (const auto& [path, reason] : parse_reasons(read_text(kRoot / "tests/long_files.txt"))) {
    ASSERT_TRUE(std::filesystem::exists(kRoot / path)) << path;
    // A file is on the list for its length, or for one function that cannot be cut.
    EXPECT_NE(describe(check_code({path, read_text(kRoot / path)}, {})), "") << path;
  }
}

const std::string kLicence = "// SPDX-License-Identifier: Apache-2.0\n";

std::string text_findings(const std::string& line) {
  return describe(check_text({"src/tree/x.cpp", kLicence + line + "\n"}));
}

TEST(StyleRules, TextRulesFindWhatTheyShould) {
  EXPECT_EQ(text_findings(std::string(100, 'x')), "");
  EXPECT_EQ(text_findings(std::string(101, 'x')), "src/tree/x.cpp:2: 101 columns\n");
  std::string accents;
  for (int i = 0; i < 100; ++i) accents += "é";
  EXPECT_EQ(text_findings(accents), "");
  EXPECT_NE(text_findings("\tint x;"), "");
  EXPECT_NE(text_findings("int x; "), "");
  EXPECT_NE(text_findings(std::string("// TO") + "DO: later"), "");
  EXPECT_EQ(text_findings(std::string("mkstemp(\"XX") + "XXXX\")"), "");
  EXPECT_EQ(describe(check_text({"x.cpp", "int x;\n"})), "x.cpp:1: no SPDX licence line\n");
  const std::string script = "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n";
  EXPECT_EQ(describe(check_text({"run", script})), "");
}

std::string comment_findings(const std::string& code) {
  return describe(check_comment_words({"src/x.cpp", code}, {{"whoever", "the caller"}}));
}

TEST(StyleRules, RefusedWordsOfCommentsAreFound) {
  EXPECT_EQ(comment_findings("int x;\n// Whoever calls\n"),
            "src/x.cpp:2: whoever: rather the caller\n");
  EXPECT_NE(comment_findings("f(); /* by\n whoever */\n"), "");
  EXPECT_NE(comment_findings("const char* x = \"//\";  ///< of whoever\n"), "");
  EXPECT_EQ(comment_findings("const char* x = \"// whoever\";\nint whoever = 1;\n"), "");
  EXPECT_EQ(comment_findings("// whoevers\n"), "");
}

std::string code_findings(const std::string& path, const std::string& code) {
  return describe(check_code({path, code}, {{"src/tree/long.cpp", "tables"}}));
}

TEST(StyleRules, CodeRulesFindWhatTheyShould) {
  EXPECT_NE(code_findings("x.hpp", "#pragma once\nusing  namespace std;\n"), "");
  EXPECT_EQ(code_findings("x.cpp", "using namespace std;\n"), "");
  EXPECT_NE(code_findings("x.hpp", "int x;\n"), "");
  for (const char* call :
       {"std::rand()", "srand(1)", "std::random_device seed", "std::this_thread::sleep_for(x)",
        "usleep(3)", "sleep (1)", "std::chrono::system_clock::now()"}) {
    const std::string code = std::string("int x = ") + call + ";\n";
    EXPECT_NE(code_findings("src/tree/x.cpp", code), "") << call;
    EXPECT_NE(code_findings("src/base/x_test.cpp", code), "") << call;
    EXPECT_EQ(code_findings("src/base/x.cpp", code), "") << call;
    EXPECT_EQ(code_findings("src/tree/x.cpp", "// " + code), "") << call;
    EXPECT_EQ(code_findings("src/tree/x.cpp", "log(\"" + std::string(call) + "\");\n"), "") << call;
  }
  EXPECT_EQ(code_findings("src/tree/x.cpp", "operand(1); asleep(2);\n"), "");
}

TEST(StyleRules, OnlyBaseMayAssumeX86) {
  const std::string x86 = "#include <immintrin.h>\n";
  EXPECT_EQ(code_findings("src/base/x.cpp", x86), "");
  EXPECT_NE(code_findings("src/tree/x.cpp", x86), "");
  EXPECT_NE(code_findings("src/tree/x.cpp", "#if 1\n" + x86 + "#endif\n"), "");
  EXPECT_EQ(code_findings("src/tree/x.cpp", "#if defined(__x86_64__)\n" + x86 + "#endif\n"), "");
}

TEST(StyleRules, LongFilesNeedAReason) {
  std::string lines;
  for (int i = 0; i < 601; ++i) lines += "\n";
  EXPECT_NE(code_findings("src/tree/x.cpp", lines), "");
  EXPECT_EQ(code_findings("src/tree/long.cpp", lines), "");
  EXPECT_THROW(static_cast<void>(parse_reasons("src/x.cpp\n")), std::runtime_error);
}

TEST(StyleRules, RefusedNamesAreFoundInCodeAlone) {
  const auto refused = parse_reasons("# a comment\nOutbox: SendBuffer\ntell: complete\n");
  const auto found = [&](const std::string& code) {
    return describe(check_names({"src/tree/x.cpp", code}, refused));
  };
  EXPECT_EQ(found("int a;\nOutbox b;\n"), "src/tree/x.cpp:2: Outbox: rather SendBuffer\n");
  EXPECT_EQ(found("pair.tell(1);\n"), "src/tree/x.cpp:1: tell: rather complete\n");
  EXPECT_EQ(found("tell_ = false;\n"), "src/tree/x.cpp:1: tell: rather complete\n");
  EXPECT_EQ(found("foretell(1); tell_me = OutboxSize + kOutbox;\n"), "");
  EXPECT_EQ(found("int a;  // the Outbox may tell\nlog(\"tell\", 't');\n"), "");
}

std::string unity_findings(const std::string& path, const std::string& one,
                           const std::string& other) {
  return describe(check_unity_names(
      {{"src/tree/a.cpp", "namespace tree {\n" + one}, {path, "namespace tree {\n" + other}}));
}

TEST(StyleRules, NamesThatTwoSourcesOfAFolderDeclareAreFound) {
  const std::string begin = "namespace {\nconstexpr int kTiny = 1;\nint half(int x) {\n}\n";
  const std::string own = begin + "}  // namespace\n";
  for (const char* clash : {"struct kTiny final : A {", "[[nodiscard]] int half();",
                            "enum class half : int {", "using kTiny = int;", "int half[2] = {};"}) {
    const std::string other = std::string("namespace {\n") + clash + "\n}  // namespace\n";
    EXPECT_NE(unity_findings("src/tree/b.cpp", own, other), "") << clash;
    EXPECT_EQ(unity_findings("src/tree/b_test.cpp", own, other), "") << clash;
    EXPECT_EQ(unity_findings("src/tree/b_fuzz.cpp", own, other), "") << clash;
    EXPECT_EQ(unity_findings("src/base/b.cpp", own, other), "") << clash;
    EXPECT_EQ(unity_findings("src/tree/b.cpp", own, std::string(clash) + "\n"), "") << clash;
  }
  for (const char* fine : {"int third(int kTiny) {", "  int half = 2;", "// int half;", "half(1);",
                           "int A::half() {", "template <class half>"}) {
    EXPECT_EQ(unity_findings("src/tree/b.cpp", own, std::string("namespace {\n") + fine + "\n"), "")
        << fine;
  }
  EXPECT_EQ(unity_findings("src/tree/b.cpp", "using a::B;\n", "using a::B;\n"), "");
  EXPECT_EQ(unity_findings("src/tree/b.cpp", "using a::B;\n", "using c::B;\n"),
            "src/tree/b.cpp:2: B is also in src/tree/a.cpp\n");
  EXPECT_NE(unity_findings("src/tree/b.cpp", "using a::half;\n", own), "");
  EXPECT_NE(unity_findings("src/tree/b.cpp", "#define HALF 1\n", "#define HALF 2\n"), "");
}

TEST(StyleRules, HeadersBehindOneAreCountedOnce) {
  const std::string low = "#include \"base/low.hpp\"\n";
  const std::string both = low + "#include \"espalier/x.hpp\"\n";
  const std::string steps = "Next get(Call& call) {\n";
  const std::string includes = "#include \"kinds/map/high.hpp\"\n";
  const auto findings = [&](const std::string& path, const std::string& text,
                            std::size_t of_handlers, std::size_t of_interfaces) {
    const std::vector<SourceFile> files = {{"src/base/low.hpp", "#include <vector>\n"},
                                           {"include/espalier/x.hpp", low},
                                           {"src/kinds/map/high.hpp", both},
                                           {path, text}};
    return describe(check_headers_behind(files, {of_handlers, of_interfaces}));
  };
  const std::string handler = "src/kinds/map/offload/get.cpp";
  EXPECT_EQ(findings(handler, includes + steps, 2, 1), "");
  EXPECT_EQ(findings(handler, includes + steps, 1, 1),
            "src/kinds/map/offload/get.cpp:1: includes src/kinds/map/high.hpp: 2 headers of the "
            "project lie behind it, and what a handler of calls includes may have 1\n");
  EXPECT_EQ(findings(handler, includes + "// Call& call\n", 1, 1), "");
  EXPECT_EQ(findings("src/kinds/map/offload/get_test.cpp", includes + steps, 1, 1), "");
  EXPECT_EQ(findings("src/client/get.cpp", includes + steps, 1, 1), "");
  const std::string asks = "#include \"channel/public_call.hpp\"\n" + includes;
  EXPECT_EQ(findings("src/kinds/map/client/map.cpp", asks, 1, 2), "");
  EXPECT_NE(findings("src/kinds/map/client/map.cpp", asks, 1, 1), "");
  EXPECT_EQ(findings("src/client/store.cpp", asks, 1, 1), "");
  EXPECT_NE(findings("src/channel/channel.hpp", includes, 1, 2), "");
  EXPECT_EQ(findings("src/channel/rings/rings.hpp", includes, 1, 2), "");
  EXPECT_NE(findings("src/base/other.hpp", "", 1, 0), "");  // espalier/x.hpp is public
}

std::string posix_findings(const std::string& code) {
  const std::vector<SourceFile> files = {
      {"src/tree/low.hpp", "class Low {\n  void send(int a);\n};\n"},
      {"src/tree/x.hpp", "#include \"tree/low.hpp\"\nResult<int>& wait(int a);\n"},
      {"src/tree/y.hpp", "#include \"tree/x.hpp\"\n"},
      {"src/tree/x.cpp", "#include \"tree/x.hpp\"\n" + code},
      {"src/tree/y.cpp", "#include \"tree/y.hpp\"\nint f() { return send(1); }\n"}};
  std::vector<Finding> found = check_posix_calls(
      files, parse_posix_names("# some\na.h: read send socket\nb.h: wait close\n"));
  EXPECT_EQ(found.back().path, "src/tree/y.cpp");  // which should include what it uses
  found.pop_back();
  return describe(found);
}

TEST(StyleRules, UnqualifiedCallsOfTheOperatingSystemAreFound) {
  EXPECT_EQ(posix_findings("int f() { return read(1); }\n"),
            "src/tree/x.cpp:2: read() of the operating system; write ::read()\n");
  for (const char* code :
       {"return read(1);", "if (read(1)) g();", "f(read (1));", "a && read(1);", "x = y + read(1);",
        "x ? read(1) : 0;", "std::thread([&] { read(1); });", "else read(1);", "f(1, read(2));",
        "Descriptor(socket(1, 2, 3));", "static_cast<void>(read(1));", "const int n = read(1);"}) {
    EXPECT_NE(posix_findings(code), "") << code;
  }
  for (const char* code :
       {"::read(1);", "x.read(1);", "x->read(1);", "// read(1)", "log(\"read(1)\");", "spread(1);",
        "bench::read(1);", "int read(int a); int b = read(1);",
        "void File::read(int a) { read(1); }", "const auto read = [] {}; read(1);",
        "for (const auto read : all) read(1);", "wait(1);", "send(1);",
        "struct A { A() : a(1), socket(2) {} int a; Socket socket; };", "~read();",
        "int read = 1;"}) {
    EXPECT_EQ(posix_findings(code), "") << code;
  }
  EXPECT_THROW(static_cast<void>(parse_posix_names("a.h\n")), std::runtime_error);
}

std::string body_of(int lines) {
  std::string text = "{\n";
  for (int i = 0; i < lines - 2; ++i) text += "  f(1);\n";
  return text + "}\n";
}

TEST(StyleRules, FunctionsAreMeasuredFromDeclarationToClosingBrace) {
  for (const std::string head :
       {"void f() ", "template <class T>\nauto g(T a,\n       T b) -> T ", "TEST(A, b) ",
        "namespace a {\nstruct alignas(8) B {\n int x{3};\n B() : x{f(1)}, y{2} ",
        "class C { enum class D { e, f };\n bool operator()(int a) const noexcept ",
        "int x;\nextern \"C\" int fuzz(const char* at) ",
        "#define M(x) \\\n  do { \\\n  } while (0)\nauto l = [](int a) "}) {
    const std::string code = head + body_of(10);
    const auto spans = find_functions(code);
    ASSERT_EQ(spans.size(), 1u) << head;
    const std::string_view before = std::string_view(code).substr(0, head.size());
    const auto head_lines =
        static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
    EXPECT_EQ(spans[0].last_line, head_lines + 10) << head;
    const std::size_t own_head_lines = head.starts_with("template") ? 2 : 0;
    EXPECT_EQ(spans[0].lines(), 10 + own_head_lines) << head;
  }
  EXPECT_EQ(code_findings("x.cpp", "void f() " + body_of(70)), "");
  EXPECT_EQ(code_findings("x.cpp", "void f() " + body_of(71)), "x.cpp:1: a function of 71 lines\n");
}

TEST(StyleRules, ClassesAndTablesAreNoFunctions) {
  EXPECT_TRUE(find_functions("struct A " + body_of(4).replace(2, 7, "int x;\n") + ";").empty());
  EXPECT_TRUE(find_functions("constexpr int kTable[] = {\n1,\n2,\n};\n").empty());
  EXPECT_TRUE(find_functions("namespace a {\nenum B : int { c };\n}\n").empty());
  EXPECT_EQ(find_functions("class A {\n void f() {}\n int g() { return 1; }\n};\n").size(), 2u);
}

TEST(StyleRules, BracesInCommentsAndStringsDoNotCount) {
  const std::string code =
      "void f() {\n  // {\n  /* { */ g('{', \"{\\\"{\", R\"x({\"))x\", 1'000'000);\n}\n"
      "void h() {}\n";
  const auto spans = find_functions(code);
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].last_line, 4u);
  EXPECT_EQ(spans[1].first_line, 5u);
}

}  // namespace
}  // namespace espalier::source

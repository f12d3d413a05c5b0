// SPDX-License-Identifier: Apache-2.0
// The command end to end: as a function on real files and data, and as a program with real pipes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/temporary_folder.hpp"
#include "tools/os_files.hpp"
#include "tools/record_reader.hpp"
#include "tools/run.hpp"
#include "tools/testing/memory_files.hpp"

namespace espalier::tools {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const fs::path kData = fs::path(ESPALIER_SOURCE_DIR) / "tests/data";

std::string content(const fs::path& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// A folder of its own, and the command run in it in one of two ways.
class Cli : public ::testing::Test {
 protected:
  int run_function(const std::vector<std::string>& arguments) {
    MemorySource input("");
    OsFiles files;
    std::ostringstream out_stream;
    std::ostringstream err_stream;
    Environment environment{
        .input = input, .out = out_stream, .err = err_stream, .files = files, .now_ns = [] {
          static std::uint64_t now = 0;
          return now += 1'000'000;
        }};
    const int exit_code = run(arguments, environment);
    out = out_stream.str();
    err = err_stream.str();
    return exit_code;
  }

  /// Runs a shell command line in which $E is the program and $D the folder of sample data.
  int run_shell(const std::string& line) {
    const std::string script = "cd '" + folder.string() + "' && E='" ESPALIER_PROGRAM "' D='" +
                               kData.string() + "' && { " + line + "\n} > out 2> err";
    const int status = std::system(("bash -c " + quoted(script)).c_str());
    out = content(folder / "out");
    err = content(folder / "err");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static std::string quoted(const std::string& text) {
    std::string result = "'";
    for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
    return result + "'";
  }

  base::TemporaryFolder folder;
  std::string out;
  std::string err;
};

TEST_F(Cli, AnswersQuestionsAboutTheElements) {
  const std::string file = kData / "elements.csv";
  const std::vector<std::string> by_symbol{"--file", file, "--header", "--key-column", "2"};
  const auto ask = [&](std::vector<std::string> words) {
    words.insert(words.end(), by_symbol.begin(), by_symbol.end());
    return run_function(words);
  };
  EXPECT_EQ(ask({"get", "Au"}), kOk);
  EXPECT_EQ(out, "Gold\n");
  EXPECT_EQ(ask({"get", "Xx"}), kFailed);
  EXPECT_EQ(ask({"scan", "--prefix", "T", "--keys-only"}), kOk);
  EXPECT_EQ(out, "Ta\nTb\nTc\nTe\nTh\nTi\nTl\nTm\nTs\n");
  EXPECT_EQ(ask({"scan", "--reverse", "--limit", "2"}), kOk);
  EXPECT_EQ(out, "Zr\tZirconium\nZn\tZinc\n");
  EXPECT_EQ(ask({"scan", "--count"}), kOk);
  EXPECT_EQ(out, "118\n");
  EXPECT_EQ(ask({"get", "--floor", "Az"}), kOk);
  EXPECT_EQ(out, "Au\tGold\n");
  EXPECT_EQ(ask({"put", "Xx", "Unobtainium"}), kFailed);
  EXPECT_THAT(err, HasSubstr("has 3 columns; only files of two"));
}

TEST_F(Cli, ExportsWhatAStandardMapWouldHold) {
  const std::string source = kData / "elements.csv";
  ReaderOptions options;
  options.format = Format::csv;
  options.header = true;
  options.key_column = 3;
  options.value_column = 1;
  OsFiles files;
  auto bytes = files.open(source);
  ASSERT_TRUE(bytes);
  RecordReader reader(**bytes, options);
  std::map<std::string, std::string> expected;
  while (reader.next() == RecordReader::Next::record) {
    expected.insert_or_assign(std::string(reader.record().key), std::string(reader.record().value));
  }
  std::string text;
  for (const auto& [key, value] : expected) text += key + "\t" + value + "\n";
  ASSERT_EQ(expected.size(), 118U);
  EXPECT_EQ(run_function({"export", source, "--header", "--key-column=3", "--value-column=1"}),
            kOk);
  EXPECT_EQ(out, text);
}

TEST_F(Cli, ChangesAFileStepByStep) {
  const std::string file = folder / "map.csv";
  EXPECT_EQ(run_function({"put", "-f", file, "--create", "b", "2"}), kOk);
  EXPECT_EQ(run_function({"put", "-f", file, "a", "x,y"}), kOk);
  EXPECT_EQ(run_function({"put", "-f", file, "b", "3"}), kOk);
  EXPECT_EQ(content(file), "a,\"x,y\"\nb,3\n");
  EXPECT_EQ(run_function({"erase", "-f", file, "a"}), kOk);
  EXPECT_EQ(content(file), "b,3\n");
  EXPECT_EQ(run_function({"check", file}), kOk);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST_F(Cli, TheProgramWorksInAPipeline) {
  EXPECT_EQ(run_shell("seq 100000 | $E scan --file - --reverse | head -n 2; echo ${PIPESTATUS[@]}"),
            0);
  EXPECT_EQ(out, "99999\n99998\n0 0 0\n");
  EXPECT_EQ(err, "");
}

TEST_F(Cli, TheProgramLoadsManyFilesAndReportsBadLines) {
  EXPECT_EQ(run_shell("printf 'a,1\\nbad\\n' > x.csv; printf 'a\\t2\\n' > y.tsv; "
                      "$E load x.csv y.tsv"),
            kOk);
  EXPECT_THAT(out, HasSubstr("records     2 in "));
  EXPECT_EQ(err, "x.csv:2: bad line: has 1 column where the first record has 2\n");
  EXPECT_EQ(run_shell("$E load --strict x.csv"), kFailed);
  EXPECT_EQ(run_shell("$E load missing.csv"), kFailed);
  EXPECT_EQ(err, "espalier: error: cannot open 'missing.csv': No such file or directory\n");
}

TEST_F(Cli, TheProgramTellsWhenItsOutputIsLost) {
  EXPECT_EQ(run_shell("seq 10 | $E scan --file - > /dev/full"), kFailed);
  EXPECT_EQ(err, "espalier: error: cannot write to standard output: No space left on device\n");
}

TEST_F(Cli, TheProgramReadsWhatItWrote) {
  EXPECT_EQ(run_shell("for f in csv tsv json-lines; do $E export $D/elements.csv --header "
                      "--key-column 3 --value-column 2 --to $f | $E export - --to tsv | cksum; "
                      "done"),
            kOk);
  const auto sums = lines_of(out);
  ASSERT_EQ(sums.size(), 3U);
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_EQ(sums[0], sums[2]);
}

TEST_F(Cli, TheProgramHelps) {
  EXPECT_EQ(run_shell("$E --version && $E --help"), kOk);
  EXPECT_THAT(out, StartsWith("espalier "));
  EXPECT_THAT(out, HasSubstr("\n  bench "));
  EXPECT_EQ(run_shell("$E"), kUsage);
  EXPECT_EQ(run_shell("$E exprot"), kUsage);
  EXPECT_EQ(err,
            "espalier: error: there is no command 'exprot'\n"
            "  Did you mean export? See espalier --help.\n");
}

/// A program that prints its name and its arguments, and ends with 7.
void write_program(const fs::path& path, const std::string& name) {
  std::ofstream(path) << "#!/bin/sh\necho " << name << " \"$@\"\nexit 7\n";
  fs::permissions(path, fs::perms::owner_all);
}

TEST_F(Cli, BenchmarksAreAProgramBesideThisOneOrInThePath) {
  fs::create_directory(folder / "bin");
  fs::create_directory(folder / "path");
  fs::copy_file(ESPALIER_PROGRAM, folder / "bin/espalier");
  const std::string bench = "PATH=$PWD/path bin/espalier bench ycsb '--keys=a b'";
  EXPECT_EQ(run_shell(bench), kFailed);
  EXPECT_THAT(err,
              StartsWith("espalier: error: there is no espalier-bench beside this program or"));
  EXPECT_THAT(err, HasSubstr("--target espalier_bench_program"));
  write_program(folder / "path/espalier-bench", "path");
  EXPECT_EQ(run_shell(bench), 7);
  EXPECT_EQ(out, "path ycsb --keys=a b\n");
  write_program(folder / "bin/espalier-bench", "beside");
  EXPECT_EQ(run_shell(bench), 7);
  EXPECT_EQ(out, "beside ycsb --keys=a b\n");
  fs::permissions(folder / "bin/espalier-bench", fs::perms::owner_read);
  EXPECT_EQ(run_shell(bench), kFailed);
  EXPECT_EQ(err, "espalier: error: cannot start espalier-bench: Permission denied\n");
}

TEST_F(Cli, TheProgramIsLinkedWithNoBlasAndNoStoreThatBenchmarksCompareWith) {
  EXPECT_EQ(run_shell("ldd $E"), kOk) << err;
  EXPECT_THAT(out, HasSubstr("libfmt"));
  for (const char* library : {"blas", "librocksdb", "liblmdb", "libhiredis", "libabsl"}) {
    EXPECT_EQ(out.find(library), std::string::npos) << out;
  }
}

TEST_F(Cli, TheProgramPrintsNoColourIntoAFile) {
  EXPECT_EQ(run_shell("TERM=xterm $E get -f none k"), kFailed);
  EXPECT_EQ(err.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace espalier::tools

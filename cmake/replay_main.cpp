// SPDX-License-Identifier: Apache-2.0
// Feeds a fuzzer's function without libFuzzer: every file of the folders or files named on the
// command line, then every one of them cut short and with single bytes changed, then random bytes.
// The same inputs in the same order each time, so that a failure repeats itself.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;
namespace fs = std::filesystem;

constexpr int kChangesPerFile = 64;
constexpr int kRandomInputs = 2000;
constexpr std::size_t kRandomBytesMax = 4096;

/// A multiplicative generator is enough here, and keeps this file free of the project's modules.
class Draws {
 public:
  std::size_t below(std::size_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(state_ >> 33) % n;
  }
  std::uint8_t byte() { return static_cast<std::uint8_t>(below(256)); }

 private:
  std::uint64_t state_ = 1;
};

/// Runs one input from an allocation of exactly its size, so that a sanitizer sees a byte too far.
void feed(const Bytes& input) {
  Bytes exact(input);
  exact.shrink_to_fit();
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

std::vector<fs::path> corpus(int count, char** paths) {
  std::vector<fs::path> files;
  for (int i = 1; i < count; ++i) {
    if (fs::is_directory(paths[i])) {
      for (const auto& entry : fs::directory_iterator(paths[i])) {
        if (entry.is_regular_file()) files.push_back(entry.path());
      }
    } else if (fs::exists(paths[i])) {
      files.emplace_back(paths[i]);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

Bytes read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

int replay(int count, char** paths) {
  Draws draws;
  const auto files = corpus(count, paths);
  for (const fs::path& file : files) {
    const Bytes input = read(file);
    feed(input);
    for (int i = 0; i < kChangesPerFile && !input.empty(); ++i) {
      Bytes changed = input;
      changed[draws.below(changed.size())] = draws.byte();
      feed(changed);
      changed.resize(draws.below(changed.size() + 1));
      feed(changed);
    }
  }
  for (int i = 0; i < kRandomInputs; ++i) {
    Bytes input(draws.below(kRandomBytesMax + 1) >> draws.below(8));
    for (std::uint8_t& byte : input) byte = draws.byte();
    feed(input);
  }
  std::printf("replayed %zu files with changes, and %d random inputs\n", files.size(),
              kRandomInputs);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return replay(argc, argv);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "replay: %s\n", failure.what());
    return 1;
  }
}

// SPDX-License-Identifier: Apache-2.0
// What searching costs, by pattern, engine and length of the texts, half of which match; and what
// compiling costs.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "regex/compiled_regex.hpp"

namespace espalier::regex {
namespace {

struct Pattern {
  const char* text;
  const char* hit;
};
constexpr std::array kPatterns = {
    Pattern{"Strasse", "Strasse"},
    Pattern{"(Strasse|Str\\.).*(8[0-9]{4})", "Str. 80123"},
    Pattern{"[0-9]+(USD|EUR|GBP)", "17EUR"},
    Pattern{"[A-Za-z]{3}:[0-9]{4}", "abc:1234"},
};

std::vector<std::string> texts_of(const Pattern& pattern, std::size_t bytes) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  base::Random random(1);
  std::vector<std::string> texts((std::size_t{4} << 20) / bytes);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    while (texts[i].size() < bytes) texts[i] += kLetters[random.below(kLetters.size())];
    const std::string hit = pattern.hit;
    if (i % 2 == 0) texts[i].replace(random.below(bytes - hit.size()), hit.size(), hit);
  }
  return texts;
}

void search(benchmark::State& state, Engines engines) {
  const Pattern& pattern = kPatterns[static_cast<std::size_t>(state.range(0))];
  const auto bytes = static_cast<std::size_t>(state.range(1));
  const std::vector<std::string> texts = texts_of(pattern, bytes);
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  std::vector<std::uint8_t> found(texts.size());
  const auto regex = CompiledRegex::compile(pattern.text, {}, engines).value();
  constexpr std::size_t kTogether = 256;
  for (auto _ : state) {
    for (std::size_t at = 0; at < views.size(); at += kTogether) {
      const auto part = std::span(views).subspan(at, std::min(kTogether, views.size() - at));
      regex->search(part, 0, found.data() + at);
    }
    benchmark::DoNotOptimize(found.data());
  }
  state.SetLabel(pattern.text);
  state.SetBytesProcessed(static_cast<std::int64_t>(
      state.iterations() * static_cast<std::int64_t>(texts.size() * bytes)));
}

void search_both(benchmark::State& state) { search(state, Engines::all); }
void search_re2(benchmark::State& state) { search(state, Engines::re2_only); }
BENCHMARK(search_both)->ArgsProduct({{0, 1, 2, 3}, {64, 256, 1024}});
BENCHMARK(search_re2)->ArgsProduct({{0, 1, 2, 3}, {64, 256, 1024}});

void compile(benchmark::State& state) {
  const Pattern& pattern = kPatterns[static_cast<std::size_t>(state.range(0))];
  for (auto _ : state) benchmark::DoNotOptimize(CompiledRegex::compile(pattern.text, {}));
  state.SetLabel(pattern.text);
}
BENCHMARK(compile)->DenseRange(0, 3);

}  // namespace
}  // namespace espalier::regex

BENCHMARK_MAIN();

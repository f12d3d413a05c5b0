// SPDX-License-Identifier: Apache-2.0
#include "tests/example_kind/tally.hpp"

#include <new>
#include <stdexcept>
#include <thread>

#include "base/clock.hpp"

namespace espalier::example {
namespace {

constexpr std::uint64_t kAwaitNs = 120'000'000'000;  // only a machine that hangs takes so long

OffloadStep sum(OffloadContext& call) {
  if (call.request().size() % 8 != 0) return call.fail(Code::invalid_argument, "whole numbers");
  BytesReader numbers(call.request());
  std::uint64_t all = 0;
  while (!numbers.rest().empty()) all += numbers.take<std::uint64_t>();
  return call.answer(plain_bytes(all));
}

OffloadStep go_wrong(OffloadContext& call) {
  switch (static_cast<Mishap>(call.request().front())) {
    case Mishap::runtime_error: throw std::runtime_error("as asked");
    case Mishap::number: throw 7;
    case Mishap::bad_alloc: throw std::bad_alloc();
    case Mishap::words: return call.fail({Code::busy, 0, 9}, "come back on Monday");
    case Mishap::no_code: return call.fail(Error{});
    case Mishap::long_reply: return call.answer("12345");
    case Mishap::none: break;
  }
  return call.answer("1234");
}

/// What a request that waits keeps.
struct AwaitState {
  std::uint64_t steps = 0;
  base::Stopwatch since;
};

OffloadStep await_signal(OffloadContext& call, TallyProgram& program) {
  auto& state = call.state<AwaitState>();
  if (state.steps++ == 0) ++program.waiting;
  if (program.signalled) return call.answer(plain_bytes(state.steps));
  if (state.since.elapsed_ns() > kAwaitNs) return call.fail(Code::busy, "nobody signals");
  std::this_thread::yield();
  return call.again();
}

OffloadStep count_in(OffloadContext& call) {
  BytesReader asked(call.request());
  const std::string_view name = asked.text();
  const std::string_view key = asked.text();
  if (!asked.complete()) return call.fail(Code::invalid_argument, "a map's name and a key");
  if (!call.may_use(name)) return call.fail(Code::not_permitted);
  auto map = call.store().open_map(name);
  if (!map) return call.fail(map.error());
  const auto added = map->add(key, 1);
  return added ? call.answer(plain_bytes(*added)) : call.fail(added.error());
}

OffloadStep take_number(OffloadContext& call) {
  const auto taken = call.store().sequence(call.request());
  return taken ? call.answer(plain_bytes(*taken)) : call.fail(taken.error());
}

OffloadStep add_to_named(OffloadContext& call) {
  BytesReader asked(call.request());
  const std::string_view name = asked.text();
  const std::string_view word = asked.text();
  if (!asked.complete()) return call.fail(Code::invalid_argument, "a tally's name and a word");
  const auto tally = call.store().open_object(kTally, name);
  if (!tally) return call.fail(tally.error().error);
  const auto counted = tally->call(kTallyAdd, word);
  return counted ? call.answer(*counted) : call.fail(counted.error().error);
}

OffloadStep tell_who(OffloadContext& call) {
  std::string text = call.client();
  if (!call.may(OffloadRight::read)) text += " may not read";
  if (call.may(OffloadRight::write)) text += " may write";
  if (call.may(OffloadRight::admin)) text += " and make";
  if (!call.may_use("others")) text += " but not all";
  return call.answer(text);
}

OffloadStep add_to_tally(OffloadContext& call) {
  const std::uint64_t counted = call.object<Tally>().add(call.request());
  return call.answer(plain_bytes(counted));
}

OffloadStep tell_all(OffloadContext& call) {
  BytesWriter words;
  call.object<Tally>().write_all(words);
  return call.answer(words.bytes());
}

Result<std::unique_ptr<OwnObject>> make_tally(const ObjectForm& form) {
  if (form.form == "none") return fail(Code::invalid_argument, 5);
  if (form.form == "throw") throw std::runtime_error("no tally");
  return std::make_unique<Tally>(form);
}

}  // namespace

std::uint64_t Tally::add(std::string_view word) {
  const std::lock_guard lock(mutex_);
  auto found = counts_.find(word);
  if (found == counts_.end()) found = counts_.emplace(word, 0).first;
  return found->second += step_;
}

void Tally::write_all(BytesWriter& to) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [word, count] : counts_) to.text(word).put(count);
}

std::uint64_t Tally::entries() const {
  const std::lock_guard lock(mutex_);
  return counts_.size();
}

void Tally::add_samples(ObjectSamples& to) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t all = 0;
  for (const auto& [word, count] : counts_) all += count;
  to.gauge({"words", "", "Different words."}, counts_.size());
  to.counter({"counted", "", "What all words come to."}, all);
  to.gauge({"No word", "", "It is left out."}, 1);
}

Offloads TallyProgram::offloads() {
  const auto awaits = [this](OffloadContext& call) { return await_signal(call, *this); };
  const auto signal = [this](OffloadContext& call) {
    signalled = true;
    return call.answer();
  };
  const auto report = [this](std::string_view call, std::string_view what) {
    const std::lock_guard lock(mutex);
    thrown.push_back(std::string(call) + ": " + std::string(what));
  };
  const auto nothing = [](OffloadContext& call) { return call.answer(); };
  return {.calls = {{kEchoSum, sum},
                    {kHelperSum, sum},
                    {kMishap, go_wrong},
                    {kWorkerMishap, go_wrong},
                    {kAwaitSignal, awaits},
                    {kWorkerAwaitSignal, awaits},
                    {kSignal, signal},
                    {kCountIn, count_in},
                    {kTakeNumber, take_number},
                    {kWho, tell_who},
                    {kNotAtDevices, nothing},
                    {kTallyNamed, add_to_named},
                    {kTallyAdd, add_to_tally},
                    {kTallyAll, tell_all}},
          .kinds = {{kTally, make_tally}},
          .threw = report};
}

}  // namespace espalier::example

// SPDX-License-Identifier: Apache-2.0
#include "dataplane/switch_control.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace espalier::dataplane {
namespace {

std::string in_words(const TextFault& fault) {
  return (fault.line == 0 ? "" : "line " + std::to_string(fault.line) + ": ") + fault.reason;
}

std::string in_hex(std::uint32_t key) {
  std::array<char, 8> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), key, 16).ptr;
  return {digits.data(), end};
}

void add_number(std::string& text, std::string_view name, std::uint64_t value) {
  text.append(name).append(" ").append(std::to_string(value)).append("\n");
}

}  // namespace

SwitchControl::Answer SwitchControl::ask(std::string_view word, std::string_view body,
                                         Holder holder) {
  const std::scoped_lock lock(mutex_);
  if (word == "put" && holder != kNobody) return put(body, holder);
  if (word == "install") return install(body);
  if (word == "change") return change(body, holder);
  if (word == "held") {
    return std::to_string(
        std::ranges::count(holders_, holder, &decltype(holders_)::value_type::second));
  }
  if (word == "program") return program_.text();
  if (word == "status") return status();
  return std::unexpected("a request is put, install, change, held, program or status");
}

void SwitchControl::drop(Holder holder) {
  const std::scoped_lock lock(mutex_);
  const auto is_held = [holder](const auto& held) { return held.second == holder; };
  if (std::ranges::none_of(holders_, is_held)) return;
  SwitchProgram rest = without(holder);
  std::erase_if(holders_, is_held);
  take(std::move(rest));
}

SwitchProgram SwitchControl::without(Holder holder) const {
  SwitchProgram rest;
  for (const SwitchMap& map : program_.maps()) {
    const auto held = holders_.find(map.keys.name());
    if (held == holders_.end() || held->second != holder) static_cast<void>(rest.add(map));
  }
  return rest;
}

std::string SwitchControl::held_by_another(const TablesName& name, Holder holder) const {
  const auto held = holders_.find(name);
  if (held == holders_.end() || held->second == holder) return "";
  return "another controller fills the tables of the map with the key " + in_hex(name.keyed);
}

// A map without a holder becomes the controller's; one that another controller holds does not.
SwitchControl::Answer SwitchControl::put(std::string_view text, Holder holder) {
  auto brought = SwitchProgram::parse(text);
  if (!brought) return std::unexpected(in_words(brought.error()));
  SwitchProgram rest = without(holder);
  for (const SwitchMap& map : brought->maps()) {
    std::string fault = held_by_another(map.keys.name(), holder);
    if (!fault.empty()) return std::unexpected(std::move(fault));
    rest.remove(map.keys.name());
  }
  for (const SwitchMap& map : brought->maps()) {
    if (rest.add(map)) continue;
    return std::unexpected("there are tables of " + std::to_string(SwitchProgram::kMapsMax) +
                           " maps, and more do not fit");
  }
  std::erase_if(holders_, [holder](const auto& held) { return held.second == holder; });
  for (const SwitchMap& map : brought->maps()) holders_[map.keys.name()] = holder;
  take(std::move(rest));
  return std::string();
}

SwitchControl::Answer SwitchControl::install(std::string_view text) {
  auto program = SwitchProgram::parse(text);
  if (!program) return std::unexpected(in_words(program.error()));
  holders_.clear();
  take(*std::move(program));
  return std::string();
}

void SwitchControl::take(SwitchProgram program) {
  program_ = std::move(program);
  function_.install(program_.function());
  ++installed_;
}

SwitchControl::Answer SwitchControl::change(std::string_view text, Holder holder) {
  const auto changes = program_.parse_changes(text);
  if (!changes) return std::unexpected(in_words(changes.error()));
  for (const EntryChange& change : *changes) {
    std::string fault = held_by_another(change.name(), holder);
    if (!fault.empty()) return std::unexpected(std::move(fault));
  }
  program_.make(*changes);
  function_.set_addresses(*changes);
  changed_ += changes->size();
  return std::string();
}

std::string SwitchControl::status() const {
  std::string text;
  std::uint64_t ranges = 0;
  std::uint64_t nodes = 0;
  for (const SwitchMap& map : program_.maps()) {
    ranges += map.tables.ways.size();
    nodes += nodes_in_sets(map.tables);
  }
  add_number(text, "maps", program_.maps().size());
  add_number(text, "maps_held", holders_.size());
  add_number(text, "ranges", ranges);
  add_number(text, "nodes", nodes);
  add_number(text, "generation", function_.generation());
  add_number(text, "programs_installed", installed_);
  add_number(text, "entries_changed", changed_);
  add_status_(text);
  return text;
}

}  // namespace espalier::dataplane

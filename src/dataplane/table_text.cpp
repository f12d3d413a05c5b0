// SPDX-License-Identifier: Apache-2.0
#include "dataplane/table_text.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "dataplane/text_numbers.hpp"
#include "dataplane/text_reader.hpp"

namespace espalier::dataplane {
namespace {

constexpr std::string_view kTablesTitle = "espalier-tables 1";

void put_way(std::string& into, const Way& way) {
  put_word(into, way.address, 16);
  if (way.next != kNoNode) {
    into += '>';
    put_number(into, way.next);
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : reader_(text) {}

  std::expected<IndexTables, TextFault> run() {
    if (!reader_.next_line() || reader_.word() != "espalier-tables" || reader_.word() != "1" ||
        !reader_.at_end()) {
      return refuse("the text does not begin with 'espalier-tables 1'");
    }
    while (reader_.next_line()) {
      if (const char* const reason = take_line()) return refuse(reason);
    }
    if (!has_root_ && (!made_.ways.empty() || made_.sets.empty())) {
      return std::unexpected(TextFault{0, "there is no line 'root'"});
    }
    if (!check(made_)) {
      return std::unexpected(TextFault{
          0, "an entry leads to what does not exist, or entries or pivots are out of order"});
    }
    return std::move(made_);
  }

 private:
  [[nodiscard]] std::unexpected<TextFault> refuse(std::string reason) const {
    return std::unexpected(TextFault{reader_.number(), std::move(reason)});
  }

  // Returns what is wrong, or null.
  const char* take_line() {
    const std::string_view kind = reader_.word();
    const char* wrong = "this line begins with no word that is known";
    if (kind == "root") wrong = take_root();
    if (kind == "range") wrong = take_range();
    if (kind == "way") wrong = take_way();
    if (kind == "set") wrong = take_set();
    if (kind == "node") wrong = take_node();
    if (kind == "beyond") wrong = take_beyond();
    if (wrong == nullptr && !reader_.at_end()) return "there are words too many";
    return wrong;
  }
  const char* take_root() {
    constexpr std::uint32_t kStagesMax = 64;
    std::uint32_t stages = 0;
    if (std::exchange(has_root_, true)) return "there are two lines 'root'";
    if (!reader_.number(made_.root.bits_per_stage) || !reader_.number(stages) ||
        !reader_.number(made_.root.preset)) {
      return "wanted: root BITS STAGES PRESET";
    }
    if (stages == 0 || stages > kStagesMax) return "there are 1 to 64 stages";
    made_.root.stages.resize(stages);
    return nullptr;
  }
  const char* take_range() {
    std::uint32_t stage = 0;
    RangeEntry entry;
    if (!reader_.number(stage) || !reader_.number(entry.table) || !reader_.number(entry.first) ||
        !reader_.number(entry.last) || !reader_.number(entry.result)) {
      return "wanted: range STAGE TABLE FIRST LAST RESULT [NEXT]";
    }
    if (!reader_.at_end() && (!reader_.number(entry.next) || entry.next == kDone)) {
      return "the next table is no number";
    }
    if (stage >= made_.root.stages.size()) return "there is no such stage";
    made_.root.stages[stage].push_back(entry);
    return nullptr;
  }
  const char* take_way() {
    if (!reader_.way(made_.ways.emplace_back())) return "wanted: way ADDRESS[>NODE]";
    return nullptr;
  }
  const char* take_set() {
    constexpr std::size_t kSetsMax = 64;
    if (made_.sets.size() == kSetsMax) return "there are at most 64 sets";
    made_.sets.emplace_back();
    return nullptr;
  }
  const char* take_node() {
    if (made_.sets.empty()) return "there is no line 'set' before it";
    SetNode& node = made_.sets.back().emplace_back();
    node.pivots.fill(std::numeric_limits<std::uint64_t>::max());
    do {
      if (node.way_count == kWaysMax) return "a node has at most 16 ways";
      if (node.way_count != 0 && !reader_.number(node.pivots[node.way_count - 1], 16)) {
        return "a pivot is no hexadecimal number of 64 bits";
      }
      if (!reader_.way(node.ways[node.way_count])) return "wanted: node WAY [PIVOT WAY]...";
      ++node.way_count;
    } while (!reader_.at_end());
    std::fill(node.ways.begin() + node.way_count, node.ways.end(), node.ways[node.way_count - 1]);
    return nullptr;
  }

  const char* take_beyond() {
    if (made_.beyond != 0) return "there are two lines 'beyond'";
    if (!reader_.number(made_.beyond) || made_.beyond == 0) return "wanted: beyond NODES";
    return nullptr;
  }

  TextReader reader_;
  IndexTables made_;
  bool has_root_ = false;
};

}  // namespace

std::string to_text(const IndexTables& tables) {
  std::string text(kTablesTitle);
  text += '\n';
  if (!tables.ways.empty()) {
    text += "root";
    put_word(text, tables.root.bits_per_stage);
    put_word(text, tables.root.stages.size());
    put_word(text, tables.root.preset);
    text += '\n';
  }
  for (std::size_t stage = 0; stage < tables.root.stages.size(); ++stage) {
    for (const RangeEntry& entry : tables.root.stages[stage]) {
      text += "range";
      for (const std::uint64_t number :
           {std::uint64_t{stage}, std::uint64_t{entry.table}, std::uint64_t{entry.first},
            std::uint64_t{entry.last}, std::uint64_t{entry.result}}) {
        put_word(text, number);
      }
      if (entry.next != kDone) put_word(text, entry.next);
      text += '\n';
    }
  }
  for (const Way& way : tables.ways) {
    text += "way";
    put_way(text, way);
    text += '\n';
  }
  for (const NodeSet& set : tables.sets) {
    text += "set\n";
    for (const SetNode& node : set) {
      text += "node";
      for (std::uint32_t i = 0; i < node.way_count; ++i) {
        if (i != 0) put_word(text, node.pivots[i - 1], 16);
        put_way(text, node.ways[i]);
      }
      text += '\n';
    }
  }
  if (tables.beyond != 0) {
    text += "beyond";
    put_word(text, tables.beyond);
    text += '\n';
  }
  return text;
}

std::expected<IndexTables, TextFault> parse_tables(std::string_view text) {
  return Parser(text).run();
}

}  // namespace espalier::dataplane
